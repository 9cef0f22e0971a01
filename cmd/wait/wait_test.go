// SPDX-License-Identifier: Apache-2.0

package wait_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
)

func TestWait(t *testing.T) {
	s := kubetest.Start(t, kubetest.Fleet()...)
	for _, tt := range []struct {
		name, args string
		code       int
		says       string
	}{
		{"ends when the cluster is available", "cluster demo", 0, "HostedCluster clusters/demo is Available\n"},
		{"ends when the cluster is updated", "cluster demo --for updated", 0, "HostedCluster clusters/demo is Available, version 1.35.4\n"},
		{"ends when a condition has a status", "cluster demo --for condition=Degraded=false", 0, "Degraded is False (AsExpected)\n"},
		{"ends when the NodePool is ready", "nodepool elastic --for ready", 0, "NodePool clusters/elastic is Ready, 0 nodes, version 1.35.4\n"},
		{"ends when the object is gone", "nodepool gone --for deleted", 0, "NodePool clusters/gone is gone\n"},
		{
			"names the cause after the timeout", "nodepool workers --timeout 1s", 1,
			"NodePool clusters/workers was not done after 1s; in the way: AllMachinesReady is False (NoCapacity): no machine has 64 cores",
		},
		{"does not wait for what does not exist", "cluster gone", 1, "Error: there is no HostedCluster clusters/gone; check the name and --namespace\n"},
		{"lists the states", "cluster demo --for ready", 2, `--for "ready": use available, updated, deleted or condition=TYPE[=STATUS]`},
		{"checks the status of a condition", "cluster demo --for condition=Ready=maybe", 2, "the status is True, False or Unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			var out bytes.Buffer
			cmd := root.HCP()
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(append([]string{"wait", "--kubeconfig", s.Kubeconfig}, strings.Fields(tt.args)...))
			g.Expect(root.Run(t.Context(), cmd, &out)).To(Equal(tt.code), out.String())
			g.Expect(out.String()).To(ContainSubstring(tt.says))
		})
	}
}
