// SPDX-License-Identifier: Apache-2.0

package scale_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
)

func TestScale(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		code       int
		says       string
		replicas   *int32
	}{
		{"scales a NodePool", "workers --replicas 5", 0, "NodePool clusters/workers is scaled from 2 to 5 replicas", ptr.To[int32](5)},
		{"does nothing twice", "workers --replicas 2", 0, "has 2 replicas already", ptr.To[int32](2)},
		{
			"refuses an autoscaled NodePool with the remedy", "elastic --replicas 3", 1,
			`is autoscaled between 0-5 nodes, so --replicas has no effect; change the bounds: kubectl patch nodepool -n clusters elastic --type merge ` +
				`-p '{"spec":{"autoScaling":{"min":3,"max":5}}}'; or end the autoscaling: kubectl patch nodepool -n clusters elastic --type merge ` +
				`-p '{"spec":{"autoScaling":null,"replicas":3}}'`, nil,
		},
		{"names a NodePool that does not exist", "gone --replicas 3", 1, "there is no NodePool clusters/gone; check the name and --namespace\n", nil},
		{"needs a number", "workers", 2, "--replicas is required", ptr.To[int32](2)},
		{"needs a number that is not negative", "workers --replicas -1", 2, "--replicas -1: use 0 or more", ptr.To[int32](2)},
		{"needs a name", "--replicas 3", 2, "name one NodePool, e.g. hypershift scale nodepool demo --replicas 3", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, s := NewWithT(t), kubetest.Start(t, kubetest.Fleet()...)
			var out bytes.Buffer
			cmd := root.HCP()
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(append([]string{"scale", "nodepool", "--kubeconfig", s.Kubeconfig}, strings.Fields(tt.args)...))
			g.Expect(root.Run(t.Context(), cmd, &out)).To(Equal(tt.code), out.String())
			g.Expect(out.String()).To(ContainSubstring(tt.says))
			pool := &hyperv1.NodePool{}
			name, _, _ := strings.Cut(tt.args, " ")
			if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "clusters", Name: name}, pool); err == nil {
				g.Expect(pool.Spec.Replicas).To(Equal(tt.replicas))
			}
		})
	}
}
