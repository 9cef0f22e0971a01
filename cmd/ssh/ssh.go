// SPDX-License-Identifier: Apache-2.0

// Package ssh holds the command that logs in to the machine of a node.
package ssh

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/look"
)

// program is the user's SSH client.
const program = "ssh"

// defaultUser is the user for which the nodes authorize the SSH keys of their cluster, with any payload and image.
const defaultUser = "core"

// userName matches the names of users that OpenSSH cannot read as options.
var userName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}$`)

// login holds the state of one `ssh machine`.
type login struct {
	look.Flags
	hardware []look.HardwareReader

	user, identity string
	printOnly      bool
}

// NewCommand returns the command `ssh machine NAME`.
func NewCommand(hardware []look.HardwareReader) *cobra.Command {
	l := &login{hardware: hardware}
	cmd := &cobra.Command{
		Use: "machine NAME [-- COMMAND...]", Aliases: []string{"machines"},
		Short: "Log in to a machine with your SSH client",
		Long: "Log in to a machine with your ssh, as the user for which the nodes authorize the SSH key of their cluster. " +
			"NAME is the name of the Machine, of its MaasMachine, of its Node or of its host, or the system id in MAAS. " +
			"Your computer must reach the address of the machine. ssh remembers the host key by the name of the " +
			"Machine, so that another machine may get the address later.",
		Example: "  hypershift ssh machine demo-x7k2p-abcde\n" +
			"  # Run one command, with a key that is not your default one\n" +
			"  hypershift ssh machine calm-ant --identity-file demo.key -- sudo journalctl -u kubelet\n" +
			"  # Only print the command line\n" +
			"  hypershift ssh machine calm-ant --print",
		Args:              oneMachine,
		RunE:              l.run,
		ValidArgsFunction: l.CompleteMachines(1),
	}
	flags := cmd.Flags()
	l.AddFlags(flags)
	flags.StringVarP(&l.user, "user", "l", defaultUser, "user to log in as")
	flags.StringVarP(&l.identity, "identity-file", "i", "", "file with the private key (default: those of your ssh)")
	flags.BoolVar(&l.printOnly, "print", false, "print the command line instead of running it")
	return cmd
}

// oneMachine accepts one name, and a command behind "--".
func oneMachine(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	names := args
	if dash >= 0 {
		names = args[:dash]
	}
	if len(names) == 1 && names[0] != "" {
		return nil
	}
	return exit.UsageError(errors.New("name one machine, and a command behind -- if you want one, " +
		"e.g. hypershift ssh machine demo-x7k2p-abcde -- uptime"))
}

func (l *login) run(cmd *cobra.Command, args []string) error {
	if !userName.MatchString(l.user) {
		return exit.UsageError(fmt.Errorf("--user %q is not the name of a user", l.user))
	}
	c, err := l.Connection.Client()
	if err != nil {
		return err
	}
	machine, clusters, err := look.New(c, l.hardware).FindMachine(cmd.Context(), l.Namespace, args[0])
	if err != nil {
		return err
	}
	if err := checkKey(machine, clusters); err != nil {
		return err
	}
	address, err := addressOf(machine)
	if err != nil {
		return err
	}
	words := l.words(machine, address, args[1:])
	if l.printOnly {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), quote(words))
		return err
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("find your SSH client: %w; install OpenSSH, or use --print", err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Machine %s/%s has the address %s: %s\n",
		machine.Namespace, machine.Name, address, quote(words))
	// ssh replaces this program, so that it has the terminal, the signals and the exit code.
	if err := syscall.Exec(path, words, os.Environ()); err != nil { //nolint:gosec // Each word is checked by words.
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}

// checkKey returns an error if the cluster of a machine has no SSH key.
func checkKey(m *look.Machine, clusters []hyperv1.HostedCluster) error {
	for i := range clusters {
		hc := &clusters[i]
		if hc.Name == m.HostedCluster.Name && hc.Namespace == m.HostedCluster.Namespace && hc.Spec.SSHKey.Name == "" {
			return fmt.Errorf("HostedCluster %s has no SSH key, so its nodes let no user log in; set spec.sshKey to a Secret "+
				"with the key id_rsa.pub: new machines have it, and previous ones when their NodePool replaces them",
				m.HostedCluster)
		}
	}
	return nil
}

// addressOf returns the first address of a machine that can be called. Addresses come from the site of a tenant: text
// that is not an address, and addresses of this computer and its link, are not used.
func addressOf(m *look.Machine) (netip.Addr, error) {
	addresses := m.Addresses()
	for _, text := range addresses {
		address, err := netip.ParseAddr(text)
		if err == nil && address.Zone() == "" && address.Unmap().IsGlobalUnicast() {
			return address, nil
		}
	}
	if len(addresses) > 0 {
		return netip.Addr{}, fmt.Errorf("Machine %s/%s has no address that can be called, only %q",
			m.Namespace, m.Name, addresses)
	}
	return netip.Addr{}, fmt.Errorf("Machine %s/%s has no address yet; see hypershift describe machine %s -n %s",
		m.Namespace, m.Name, m.Name, m.HostedCluster.Namespace)
}

// words returns the command line. Nothing that others choose can be read as an option: the name of the Machine is a
// DNS name behind "=", and the address stands behind "--".
func (l *login) words(m *look.Machine, address netip.Addr, command []string) []string {
	words := []string{program, "-l", l.user}
	if l.identity != "" {
		words = append(words, "-i", l.identity)
	}
	if len(validation.IsDNS1123Subdomain(m.Name)) == 0 {
		words = append(words, "-o", "HostKeyAlias="+m.Name)
	}
	return slices.Concat(words, []string{"--", address.String()}, command)
}

// plain matches words that a shell does not change.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quote returns a command line for a shell.
func quote(words []string) string {
	quoted := make([]string, 0, len(words))
	for _, word := range words {
		if !plain.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted = append(quoted, word)
	}
	return strings.Join(quoted, " ")
}
