// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

// created returns a response with status 201 for a created object.
func created(object any) (any, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return reply{status: 201, media: mediaJSON, body: body}, nil
}

func usersResource() resource {
	return resource{name: "users", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			out := []any{}
			for _, u := range c.DB.Users.All() {
				out = append(out, c.print.User(u))
			}
			return out, nil
		}},
		"GET whoami": {read: func(c *call) (any, error) { return c.print.User(c.user), nil }},
		"POST":       {write: createUser},
	}}
}

var usernamePattern = regexp.MustCompile(`^[\w.@+-]+$`)

func createUser(c *call) (any, error) {
	if err := c.admin(); err != nil {
		return nil, err
	}
	for _, key := range []string{"username", "email", "password", "is_superuser"} {
		if !c.form.Has(key) {
			return nil, problem.Text(400, "No provided %s!", key)
		}
	}
	name := c.form.Get("username")
	if !usernamePattern.MatchString(name) {
		return nil, problem.Field("username", "Enter a valid username.")
	}
	if c.DB.Users.Get(name) != nil {
		return nil, problem.Field("username", "A user with that username already exists.")
	}
	u := &inventory.User{
		Name: name, Email: c.form.Get("email"), Superuser: c.form.Bool("is_superuser"), Local: true,
		Keys: []inventory.NamedToken{{Name: "MAAS consumer", Token: c.DB.NewToken()}},
	}
	c.DB.Users.Put(u)
	return c.print.User(u), nil
}

func userResource() resource {
	return resource{name: "user", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			u := c.DB.Users.Get(c.path[0])
			if u == nil {
				return nil, problem.NotFound("User")
			}
			return c.print.User(u), nil
		}},
		"DELETE": {write: func(c *call) (any, error) {
			if err := c.admin(); err != nil {
				return nil, err
			}
			name := c.path[0]
			if name == c.user.Name {
				return nil, problem.Text(400, "An administrator cannot delete their own account.")
			}
			if m := c.DB.Machines.Find(func(m *inventory.Machine) bool { return m.Owner == name }); m != nil {
				return nil, problem.Text(400, "User %s cannot be deleted: it owns machine %s.", name, m.Hostname)
			}
			c.DB.Users.Delete(name)
			return noContent, nil
		}},
	}}
}

func accountResource() resource {
	return resource{name: "account", ops: ops{
		"GET list_authorisation_tokens":   {read: listTokens},
		"POST create_authorisation_token": {write: createToken},
		"POST delete_authorisation_token": {write: deleteToken},
		"POST update_token_name":          {write: renameToken},
	}}
}

func listTokens(c *call) (any, error) {
	out := []any{}
	for _, k := range c.user.Keys {
		out = append(out, render.Object{"name": k.Name, "token": k.Consumer + ":" + k.Key + ":" + k.Secret})
	}
	return out, nil
}

func createToken(c *call) (any, error) {
	name := c.form.Get("name")
	if name == "" {
		name = "MAAS consumer"
	}
	token := c.DB.NewToken()
	u := c.DB.Users.Edit(c.user.Name)
	u.Keys = append(slices.Clone(u.Keys), inventory.NamedToken{Name: name, Token: token})
	return render.Object{"token_key": token.Key, "token_secret": token.Secret, "consumer_key": token.Consumer, "name": name}, nil
}

func deleteToken(c *call) (any, error) {
	key := c.form.Get("token_key")
	if key == "" {
		return nil, problem.Text(400, "No provided token_key!")
	}
	u := c.DB.Users.Edit(c.user.Name)
	u.Keys = slices.DeleteFunc(slices.Clone(u.Keys), func(k inventory.NamedToken) bool { return k.Key == key })
	return noContent, nil
}

func renameToken(c *call) (any, error) {
	given := c.form.Get("token")
	u := c.DB.Users.Edit(c.user.Name)
	u.Keys = slices.Clone(u.Keys)
	for i, k := range u.Keys {
		if k.Key == given || strings.Contains(given, ":"+k.Key+":") {
			u.Keys[i].Name = c.form.Get("name")
			return text(202, "Accepted"), nil
		}
	}
	return nil, problem.NotFound("Token")
}

func sshKeysResource() resource {
	return resource{name: "sshkeys", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			out := []any{}
			for _, k := range c.user.SSHKeys {
				out = append(out, sshKey(k))
			}
			return out, nil
		}},
		"POST": {write: func(c *call) (any, error) {
			key := strings.TrimSpace(c.form.Get("key"))
			if key == "" {
				return nil, problem.Field("key", "This field is required.")
			}
			if !strings.HasPrefix(key, "ssh-") && !strings.HasPrefix(key, "ecdsa-") {
				return nil, problem.Field("key", "Invalid SSH public key.")
			}
			if slices.ContainsFunc(c.user.SSHKeys, func(k inventory.SSHKey) bool { return k.Key == key }) {
				return nil, problem.Field("__all__", "This key has already been added for this user.")
			}
			k := inventory.SSHKey{ID: c.DB.Next("sshkeys"), Key: key}
			u := c.DB.Users.Edit(c.user.Name)
			u.SSHKeys = append(slices.Clone(u.SSHKeys), k)
			return created(sshKey(k))
		}},
	}}
}

func sshKey(k inventory.SSHKey) render.Object {
	var source any
	if k.Source != "" {
		source = k.Source
	}
	return render.Object{"id": k.ID, "key": k.Key, "keysource": source, "resource_uri": render.Root + "account/prefs/sshkeys/" + strconv.Itoa(k.ID) + "/"}
}

func sshKeyResource() resource {
	find := func(c *call) (int, error) {
		id, err := strconv.Atoi(c.path[0])
		at := slices.IndexFunc(c.user.SSHKeys, func(k inventory.SSHKey) bool { return k.ID == id })
		if err != nil || at < 0 {
			return 0, problem.NotFound("SSHKey")
		}
		return at, nil
	}
	return resource{name: "sshkey", ops: ops{
		"GET": {read: func(c *call) (any, error) {
			at, err := find(c)
			if err != nil {
				return nil, err
			}
			return sshKey(c.user.SSHKeys[at]), nil
		}},
		"DELETE": {write: func(c *call) (any, error) {
			at, err := find(c)
			if err != nil {
				return nil, err
			}
			u := c.DB.Users.Edit(c.user.Name)
			u.SSHKeys = slices.Delete(slices.Clone(u.SSHKeys), at, at+1)
			return noContent, nil
		}},
	}}
}
