// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
)

// openTerminal returns both sides of a pseudo terminal: the keyboard and screen of a user, and what a program has.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo terminals: %v", err)
	}
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Close()
		_ = user.Close()
	})
	return user, program
}

// TestDestroy types answers to the question of destroy.
func TestDestroy(t *testing.T) {
	const command = "destroy nodepool --name workers --timeout 5s"
	for _, tt := range []struct {
		name, args, answer string
		code               int
		exists             bool
		shows              string
	}{
		{"destroys after the name", command, "workers\n", 0, false, "NodePool clusters/workers of cluster demo with 1 node: its machines are released"},
		{"changes nothing after another answer", command, "yes\n", 1, true, `nothing was changed: the answer is not "workers"`},
		{"asks nothing with --yes", command + " --yes", "", 0, false, "NodePool clusters/workers is gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("NO_COLOR", "1")
			g, s := NewWithT(t), kubetest.Start(t, kubetest.Fleet()...)
			user, program := openTerminal(t)
			_, err := user.WriteString(tt.answer)
			g.Expect(err).NotTo(HaveOccurred())
			cmd := root.HCP()
			cmd.SetIn(program)
			cmd.SetErr(program)
			cmd.SetArgs(append(strings.Fields(tt.args), "--kubeconfig", s.Kubeconfig))
			g.Expect(root.Run(t.Context(), cmd, program)).To(Equal(tt.code))
			err = s.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: "workers"}, &hyperv1.NodePool{})
			g.Expect(err == nil).To(Equal(tt.exists))
			screen := gbytes.BufferReader(user)
			g.Eventually(screen).WithTimeout(time.Minute).Should(gbytes.Say(regexp.QuoteMeta(tt.shows)))
		})
	}
}
