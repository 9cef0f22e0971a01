// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
	"github.com/openshift/hypershift/support/skew"
)

func status(t *testing.T, objects ...client.Object) string {
	t.Helper()
	s := kubetest.Start(t, objects...)
	var out, said bytes.Buffer
	cmd := root.Hypershift()
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs([]string{"status", "--kubeconfig", s.Kubeconfig})
	if code := root.Run(t.Context(), cmd, &said); code != 0 {
		t.Fatal(said.String())
	}
	return out.String()
}

func operator(ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "hypershift", Name: "operator", Annotations: map[string]string{skew.Annotation: skew.Version},
		},
		Spec:   appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
		Status: appsv1.DeploymentStatus{ReadyReplicas: ready, UpdatedReplicas: 1},
	}
}

func TestStatus(t *testing.T) {
	t.Run("shows faults first", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(status(t, append(kubetest.Fleet(), operator(0))...)).To(Equal(
			`Operator  0 of 1 pods are ready and 1 have the installed version; see kubectl describe pods -n hypershift
HostedCluster team/young  PlatformCredentialsFound is False (PlatformCredentialsNotFound): ` +
				`Secret \x1b[31mmaas\x1b[0m does not exist; create it, for 5d
NodePool clusters/workers  AllMachinesReady is False (NoCapacity): no machine has 64 cores, for 5d
Machine clusters-demo/workers-b  Ready is False (NoCapacity): no machine has 64 cores, for 5d

Operator   version ` + skew.Version + `, 0 of 1 ready
Clusters   2: 1 Available, 1 Creating
NodePools  2: 1 Ready, 1 Scaling; 1/2 nodes
Machines   2: 1 Provisioning, 1 Running
`))
	})
	t.Run("says that all is well", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(status(t, operator(1))).To(HavePrefix("All is as it should be.\n\nOperator   version " + skew.Version + ", 1 of 1 ready\n"))
	})
	t.Run("says how to install the operator", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(status(t)).To(HavePrefix("Operator  Deployment hypershift/operator does not exist: run hypershift install"))
	})
}
