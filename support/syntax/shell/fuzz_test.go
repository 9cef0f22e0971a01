// SPDX-License-Identifier: Apache-2.0

package shell_test

import (
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/support/syntax/shell"
)

// FuzzQuoted lets a shell read the text back.
func FuzzQuoted(f *testing.F) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		f.Skip("there is no shell")
	}
	for _, text := range []string{"console=ttyS0", `a"; touch /tmp/x; "`, "$(id)", "`id`", "${HOME}", `a\`, `\$x`, "!!", "a\nb", "ä", "\xff", "", "'"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		written, err := shell.Quoted("spec.kernelArguments", text)
		if err != nil {
			return
		}
		cmd := exec.CommandContext(t.Context(), sh, "-eu")
		cmd.Args = append(cmd.Args, "-c", `value="`+written+`"; printf %s "$value"`)
		read, err := cmd.Output()
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(read)).To(Equal(text))
	})
}

func TestQuoted(t *testing.T) {
	g := NewWithT(t)
	g.Expect(shell.Quoted("f", "console=ttyS0 a.b=1,2:3/4@5%6+7-8")).To(Equal("console=ttyS0 a.b=1,2:3/4@5%6+7-8"))
	_, err := shell.Quoted("spec.kernelArguments", "hunter2\nx")
	g.Expect(err).To(MatchError(And(HavePrefix("spec.kernelArguments "), Not(ContainSubstring("hunter2")))))
}
