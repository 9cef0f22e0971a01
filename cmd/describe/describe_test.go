// SPDX-License-Identifier: Apache-2.0

package describe_test

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
)

func describe(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	s := kubetest.Start(t, kubetest.Fleet()...)
	var out, said bytes.Buffer
	cmd := root.HCP()
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append(append([]string{"describe"}, args...), "--kubeconfig", s.Kubeconfig))
	code = root.Run(t.Context(), cmd, &said)
	return out.String(), said.String(), code
}

func TestCluster(t *testing.T) {
	g := NewWithT(t)
	out, said, code := describe(t, "cluster", "demo")
	g.Expect(code).To(BeZero(), said)
	g.Expect(said).To(BeEmpty())
	g.Expect(out).To(Equal(`HostedCluster clusters/demo  Available  MAAS  version 1.35.4  API 10.0.0.9:6443  age 5d
│   release registry.example/release:1.35.4
├── NodePool elastic  Ready  0 nodes  version 1.35.4  age 5d
│       release registry.example/release:1.35.4, updates by Replace, autoscaled 0-5
└── NodePool workers  Scaling  1/2 nodes  version 1.35.4  age 5d
    │   release registry.example/release:1.35.4, updates by Replace
    │   ! AllMachinesReady is False (NoCapacity): no machine has 64 cores, for 5d
    ├── Machine workers-a  Running  node calm-ant  age 5d
    │   └── MaasMachine workers-a  Deployed  host calm-ant  id wq4h8c  zone az1  maas:///az1/wq4h8c  age 5d
    └── Machine workers-b  Provisioning  age 5d
        │   ! InfrastructureReady is False (NoCapacity): waiting, for 5d
        └── MaasMachine workers-b  -  age 5d
                ! Ready is False (NoCapacity): no machine has 64 cores, for 5d
`))
}

func TestMachine(t *testing.T) {
	for _, name := range []string{"workers-a", "calm-ant", "wq4h8c", "maas:///az1/wq4h8c"} {
		t.Run("finds the machine by "+name, func(t *testing.T) {
			g := NewWithT(t)
			out, said, code := describe(t, "machine", name)
			g.Expect(code).To(BeZero(), said)
			g.Expect(out).To(And(HavePrefix("HostedCluster clusters/demo"), ContainSubstring("── NodePool workers"),
				ContainSubstring("── Machine workers-a"), Not(ContainSubstring("workers-b"))))
		})
	}
	t.Run("names the namespace when there is no such machine", func(t *testing.T) {
		g := NewWithT(t)
		_, said, code := describe(t, "machine", "none")
		g.Expect(code).To(Equal(1))
		g.Expect(said).To(Equal("Error: no cluster of namespace clusters has a machine \"none\"; check the name and --namespace\n"))
	})
}
