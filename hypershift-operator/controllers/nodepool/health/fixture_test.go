// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope/scopetest"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
	"github.com/openshift/hypershift/support/condition"
)

// checked is a server in memory with the Check of a pool, whose own client may be another.
type checked struct {
	*GomegaWithT
	Check
	t      *testing.T
	server client.WithWatch
}

// fleet returns a fixture with existing machines.
func fleet(t *testing.T, names ...string) (*checked, *scope.Scope) {
	t.Helper()
	server, s := scopetest.Fleet(t, names...)
	return &checked{GomegaWithT: NewWithT(t), Check: Check{Scope: s, Client: server}, t: t, server: server}, s
}

func (w *checked) machine(name string) *clusterv1.Machine {
	w.t.Helper()
	return scopetest.Read(w.t, w.server, &clusterv1.Machine{}, name)
}

// healthCheck returns the pool's health check, which exists.
func (w *checked) healthCheck() *clusterv1.MachineHealthCheck {
	w.t.Helper()
	return scopetest.Read(w.t, w.server, &clusterv1.MachineHealthCheck{}, fixture.PoolName)
}

// skipped returns the value of the annotation that disables remediation.
func (w *checked) skipped(name string) string {
	return w.machine(name).Annotations[clusterv1.MachineSkipRemediationAnnotation]
}

func (w *checked) failed(name string) *metav1.Condition {
	return meta.FindStatusCondition(w.machine(name).Status.Conditions, failedCondition)
}

// gaveUp reports that the provider gave up a machine.
func gaveUp(status *infrav1.MaasMachineStatus) {
	status.FailureReason, status.FailureMessage = ptr.To("CreateError"), ptr.To("deployments failed on 3 machines")
	meta.SetStatusCondition(&status.Conditions, condition.False("Ready", "DeployAttemptsExhausted", ""))
}
