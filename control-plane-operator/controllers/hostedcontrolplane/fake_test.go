// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/testenv"
)

var errRefused = errors.New("refused")

// fakeWorld returns a fixture with the operator, a fake server, and one control plane that has PKI reconciliation
// disabled.
func fakeWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	hcp := fixture.ControlPlane()
	hcp.UID, hcp.Generation = "1234", 3
	hcp.Annotations = map[string]string{pki.DisableAnnotation: "true"}
	hcp.Spec.Services[0].ServicePublishingStrategy.NodePort.Port = 30443
	objects = append(append(objects, fixture.HostedNamespace()...), hcp)
	w := worldOn(t, fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&hyperv1.ControlPlaneComponent{}, &hyperv1.HostedControlPlane{}, &corev1.Service{}).Build(), hcp)
	w.clock.SetTime(now)
	w.get("demo", w.hcp)
	return w
}

// refuse makes the server fail the requests with this prefix, as in "get v1.Secret clusters-demo/root-ca".
func (w *world) refuse(what string) {
	server := testenv.Intercept(w.client, func(r testenv.Request) error {
		if strings.HasPrefix(r.String(), what) {
			return errRefused
		}
		return r.Do()
	})
	w.r.Client, w.r.Infra.Client, w.r.PKI.Client = server, server, server
}

// begin starts a reconcile of the control plane on the server.
func (w *world) begin() *scope {
	w.t.Helper()
	w.get("demo", w.hcp)
	return &scope{hcp: w.hcp.DeepCopy(), valid: w.hcp.DeepCopy()}
}

func secretOf(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}
