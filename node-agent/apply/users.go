// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/node-agent/host"
	"github.com/openshift/hypershift/support/nodeplan"
	"github.com/openshift/hypershift/support/syntax"
)

func groups(ctx context.Context, h *host.Host, plan *nodeplan.Plan) error {
	for _, g := range plan.Groups {
		present, err := entry(h, "/etc/group", g.Name)
		if err != nil {
			return err
		}
		switch {
		case g.Absent && present != nil:
			err = h.Do(ctx, "groupdel", g.Name)
		case !g.Absent && present == nil:
			args := flags{}.number("--gid", g.GID).on("--system", g.System)
			err = h.Do(ctx, "groupadd", append(args, g.Name)...)
		}
		if err != nil {
			return fmt.Errorf("group %s: %w", g.Name, err)
		}
	}
	return nil
}

func users(ctx context.Context, h *host.Host, plan *nodeplan.Plan) error {
	for _, u := range plan.Users {
		if err := user(ctx, h, u); err != nil {
			return fmt.Errorf("user %s: %w", u.Name, err)
		}
	}
	return nil
}

func user(ctx context.Context, h *host.Host, u nodeplan.User) error {
	present, err := entry(h, "/etc/passwd", u.Name)
	if err != nil {
		return err
	}
	if u.Absent {
		if present == nil {
			return nil
		}
		return h.Do(ctx, "userdel", u.Name)
	}
	program, args := "useradd", flags{}
	if present != nil {
		program = "usermod"
		args = args.text("--groups", strings.Join(u.Groups, ",")).on("--append", len(u.Groups) > 0)
	} else {
		args = args.text("--groups", strings.Join(u.Groups, ",")).on("--create-home", !u.NoHome).on("--no-create-home", u.NoHome).
			on("--no-user-group", u.NoUserGroup).on("--system", u.System).text("--home-dir", u.Home)
		if u.Shell == "" {
			u.Shell = "/bin/bash"
		}
	}
	args = args.number("--uid", u.UID).text("--comment", u.Comment).text("--shell", u.Shell).text("--gid", u.PrimaryGroup)
	if present == nil || len(args) > 0 {
		if err := h.Do(ctx, program, append(args, u.Name)...); err != nil {
			return err
		}
	}
	if err := setPassword(ctx, h, u); err != nil {
		return err
	}
	return authorize(h, u)
}

// setPassword passes the hash to chpasswd on its standard input: every process can read the arguments of other
// processes.
func setPassword(ctx context.Context, h *host.Host, u nodeplan.User) error {
	if u.PasswordHash == "" {
		return nil
	}
	line := u.Name + ":" + u.PasswordHash
	if err := syntax.Printable("passwordHash of user "+u.Name, line); err != nil {
		return err
	}
	_, err := h.Run(ctx, strings.NewReader(line+"\n"), "chpasswd", "--encrypted")
	return err
}

// KeysOf returns the path of a user's authorized keys. The user need not exist yet.
func KeysOf(h *host.Host, u nodeplan.User) string {
	home := cmp.Or(u.Home, "/home/"+u.Name)
	if fields, err := entry(h, "/etc/passwd", u.Name); err == nil && len(fields) > homeField {
		home = fields[homeField]
	}
	return home + keysFile
}

const (
	// homeField is the index of the home folder in a line of /etc/passwd.
	homeField = 5
	keysFile  = "/.ssh/authorized_keys"
)

// authorize adds keys to the authorized keys of the user.
func authorize(h *host.Host, u nodeplan.User) error {
	if len(u.SSHKeys) == 0 {
		return nil
	}
	fields, err := entry(h, "/etc/passwd", u.Name)
	if err != nil {
		return err
	}
	if len(fields) < 6 {
		return errors.New("it is not in /etc/passwd, although it was just made")
	}
	owner, dir := nodeplan.Owner{User: fields[2], Group: fields[3]}, fields[5]+"/.ssh"
	path := dir + "/authorized_keys"
	for _, own := range []string{dir, path} {
		// The user owns the folder. With a link there, the user could make root write anywhere.
		if _, err := os.Readlink(h.Path(own)); err == nil {
			return fmt.Errorf("%s is a link: keys are written to the user's own folder only", own)
		}
	}
	if err := os.MkdirAll(h.Path(dir), 0o700); err != nil {
		return err
	}
	present, err := h.Read(path)
	if err != nil {
		return err
	}
	text := string(present)
	for _, key := range u.SSHKeys {
		if !strings.Contains("\n"+text, "\n"+key+"\n") {
			text = strings.TrimRight(text, "\n") + "\n" + key + "\n"
		}
	}
	if _, err := h.Write(path, []byte(strings.TrimLeft(text, "\n")), 0o600); err != nil {
		return err
	}
	return errors.Join(own(h, dir, owner), own(h, path, owner))
}

// flags holds the arguments of a program.
type flags []string

func (f flags) text(name, value string) flags {
	if value == "" {
		return f
	}
	return append(f, name, value)
}

func (f flags) number(name string, value *int) flags {
	if value == nil {
		return f
	}
	return append(f, name, strconv.Itoa(*value))
}

func (f flags) on(name string, set bool) flags {
	if !set {
		return f
	}
	return append(f, name)
}
