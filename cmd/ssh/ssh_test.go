// SPDX-License-Identifier: Apache-2.0

package ssh_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
)

// asProgram is the environment variable that makes the binary of the tests be the program.
const asProgram = "TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(root.Main(root.Hypershift()))
	}
	os.Exit(m.Run())
}

// fleet returns the clusters of kubetest.Fleet. Cluster demo has an SSH key, and machine workers-a the addresses.
func fleet(key string, addresses ...string) []client.Object {
	objects := kubetest.Fleet()
	for _, obj := range objects {
		switch obj := obj.(type) {
		case *hyperv1.HostedCluster:
			obj.Spec.SSHKey.Name = key
		case *clusterv1.Machine:
			obj.Spec.InfrastructureRef.Name = "maas-" + obj.Name
			if obj.Name != "workers-a" {
				continue
			}
			obj.Status.Addresses = nil
			for _, address := range addresses {
				obj.Status.Addresses = append(obj.Status.Addresses,
					clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
			}
		case *infrav1.MaasMachine:
			obj.Name = "maas-" + obj.Name
		}
	}
	return objects
}

func ssh(t *testing.T, s *kubetest.Server, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, said bytes.Buffer
	cmd := root.Hypershift()
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append([]string{"ssh", "machine", "--kubeconfig", s.Kubeconfig}, args...))
	code = root.Run(t.Context(), cmd, &said)
	return out.String(), said.String(), code
}

func TestPrint(t *testing.T) {
	const line = "ssh -l core -o HostKeyAlias=workers-a -- 10.0.0.7\n"
	for _, tt := range []struct {
		name, args, key string
		addresses       []string
		want, says      string
		code            int
	}{
		{name: "finds a Machine", args: "workers-a --print", want: line},
		{name: "finds a MaasMachine", args: "maas-workers-a --print", want: line},
		{name: "finds a Node", args: "calm-ant --print", want: line},
		{name: "finds a system id of MAAS", args: "wq4h8c --print", want: line},
		{name: "logs in as another user with another key", args: "workers-a --print -l ubuntu -i my.key",
			want: "ssh -l ubuntu -i my.key -o HostKeyAlias=workers-a -- 10.0.0.7\n"},
		{name: "quotes a command", args: "workers-a --print -- ls $HOME -l",
			want: "ssh -l core -o HostKeyAlias=workers-a -- 10.0.0.7 ls '$HOME' -l\n"},
		{name: "leaves out what is not an address of a machine", args: "workers-a --print",
			addresses: []string{
				"-oProxyCommand=evil", "127.0.0.1", "::ffff:127.0.0.1", "fe80::1%eth0", "169.254.1.1", "fd00::7",
			},
			want: "ssh -l core -o HostKeyAlias=workers-a -- fd00::7\n"},
		{name: "refuses a machine without an address that can be called", args: "workers-a", code: 1,
			addresses: []string{"-oProxyCommand=evil"}, says: `has no address that can be called, only ["-oProxyCommand=evil"]`},
		{name: "refuses a machine without addresses", args: "workers-b", code: 1,
			says: "Machine clusters-demo/workers-b has no address yet; see hypershift describe machine workers-b -n clusters"},
		{name: "refuses a cluster without SSH key", args: "workers-a", key: "-", code: 1,
			says: "HostedCluster clusters/demo has no SSH key, so its nodes let no user log in; set spec.sshKey"},
		{name: "names a machine that does not exist", args: "gone", code: 1,
			says: `no cluster of namespace clusters has a machine "gone"; check the name and --namespace`},
		{name: "refuses a user that is an option", args: "workers-a --user=-oProxyCommand=evil", code: 2,
			says: `--user "-oProxyCommand=evil" is not the name of a user`},
		{name: "needs a name", args: "-- uptime", code: 2, says: "name one machine"},
		{name: "needs -- before a command", args: "workers-a uptime", code: 2, says: "a command behind --"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			key, addresses := "demo-ssh-key", tt.addresses
			if tt.key == "-" {
				key = ""
			}
			if addresses == nil {
				addresses = []string{"10.0.0.7"}
			}
			s := kubetest.Start(t, fleet(key, addresses...)...)
			out, said, code := ssh(t, s, strings.Fields(tt.args)...)
			g.Expect(code).To(Equal(tt.code), said)
			g.Expect(out).To(Equal(tt.want))
			g.Expect(said).To(ContainSubstring(tt.says))
			g.Expect(s.Writes()).To(BeEmpty())
		})
	}
	t.Run("says which right a tenant lacks", func(t *testing.T) {
		s := kubetest.Start(t, fleet("key", "10.0.0.7")...)
		s.Refuse(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/namespaces/clusters-demo/") })
		_, said, code := ssh(t, s, "workers-a")
		NewWithT(t).Expect([]any{code, said}).To(HaveExactElements(1, ContainSubstring("you have no right to list them")))
	})
}

// TestRun runs the program with an ssh in PATH that prints its arguments and fails.
func TestRun(t *testing.T) {
	g := NewWithT(t)
	s := kubetest.Start(t, fleet("demo-ssh-key", "10.0.0.7")...)
	bin := t.TempDir()
	script := "#!/bin/sh\nfor word; do echo \"<$word>\"; done\nread line; echo \"read $line\"; exit 42\n"
	g.Expect(os.WriteFile(filepath.Join(bin, "ssh"), []byte(script), 0o700)).To(Succeed())
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	run := func(path string) (stdout, stderr string, code int) {
		args := []string{"ssh", "machine", "--kubeconfig", s.Kubeconfig, "calm-ant", "--", "uptime", "-p"}
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env = []string{asProgram + "=1", "PATH=" + path}
		var out, said bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("typed\n"), &out, &said
		_ = cmd.Run() // The exit code is compared.
		return out.String(), said.String(), cmd.ProcessState.ExitCode()
	}
	out, said, code := run(bin)
	g.Expect(code).To(Equal(42), "the exit code is that of ssh")
	g.Expect(out).To(Equal("<-l>\n<core>\n<-o>\n<HostKeyAlias=workers-a>\n<-->\n<10.0.0.7>\n<uptime>\n<-p>\nread typed\n"))
	g.Expect(said).To(Equal("Machine clusters-demo/workers-a has the address 10.0.0.7: " +
		"ssh -l core -o HostKeyAlias=workers-a -- 10.0.0.7 uptime -p\n"))

	_, said, code = run(t.TempDir())
	g.Expect([]any{code, said}).To(HaveExactElements(1, ContainSubstring("install OpenSSH, or use --print")))
}
