// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/platform/maas"
)

// run types `doctor -o json` without a management cluster, and returns its report and its exit.
func run(t *testing.T, args ...string) (doctor.Report, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("MAAS_API_KEY", "")
	cmd := doctor.NewCommand(maas.NewDoctor())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, said strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append([]string{"-o", "json"}, args...))
	err := cmd.ExecuteContext(t.Context())
	report := doctor.Report{}
	NewWithT(t).Expect(json.Unmarshal([]byte(out.String()), &report)).To(Succeed(), said.String())
	return report, err
}

// of returns the result of a check.
func of(t *testing.T, results []doctor.Result, part, check string) doctor.Result {
	t.Helper()
	for _, r := range results {
		if r.Part == part && r.Check == check {
			return r
		}
	}
	t.Fatalf("there is no result of %s %s in %+v", part, check, results)
	return doctor.Result{}
}
