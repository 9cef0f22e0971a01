// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	certificatesv1alpha1 "github.com/openshift/hypershift/api/certificates/v1alpha1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
)

const namespace = fixture.Namespace

var now = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// payload has an image for every tag of the Kubernetes payload, and the images that the operator provides.
type payload map[string]string

func (p payload) ComponentImage(tag string) (string, bool) {
	image, ok := p[tag]
	return image, ok
}

func kubernetesPayload() payload {
	p := payload{}
	for _, tag := range []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
		"availability-prober", "hosted-cluster-config-operator", "controlplane-operator", "tunnel",
	} {
		p[tag] = "registry.example/payload/" + tag + "@sha256:0001"
	}
	return p
}

func published(service hyperv1.ServiceType, strategy hyperv1.ServicePublishingStrategy) hyperv1.ServicePublishingStrategyMapping {
	return hyperv1.ServicePublishingStrategyMapping{Service: service, ServicePublishingStrategy: strategy}
}

func nodePort(port int32) hyperv1.ServicePublishingStrategy {
	return hyperv1.ServicePublishingStrategy{
		Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.10", Port: port},
	}
}

// controlPlane returns a minimal control plane; edit changes it.
func controlPlane(edit ...func(*hyperv1.HostedControlPlane)) *hyperv1.HostedControlPlane {
	hcp := &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo", UID: "1234", Generation: 1},
		Spec: hyperv1.HostedControlPlaneSpec{
			ReleaseImage: "registry.example/release:1.36.3",
			PullSecret:   corev1.LocalObjectReference{Name: "pull-secret"},
			InfraID:      "demo-abcde",
			Platform:     hyperv1.PlatformSpec{Type: hyperv1.NonePlatform},
			DNS:          hyperv1.DNSSpec{BaseDomain: "example.com"},
			Networking: hyperv1.ClusterNetworking{
				NetworkType:    hyperv1.OVNKubernetes,
				ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: *ipnet.MustParseCIDR("10.132.0.0/14"), HostPrefix: 23}},
				ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: *ipnet.MustParseCIDR("172.31.0.0/16")}},
			},
			ControllerAvailabilityPolicy: hyperv1.SingleReplica,
			Etcd:                         hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{}},
			Services: []hyperv1.ServicePublishingStrategyMapping{
				published(hyperv1.APIServer, nodePort(0)), published(hyperv1.Ignition, nodePort(31000)),
			},
		},
	}
	for _, f := range edit {
		f(hcp)
	}
	return hcp
}

func highlyAvailable(hcp *hyperv1.HostedControlPlane) {
	hcp.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
}

// newScope returns a scope whose management cluster is a fake one with the given objects.
func newScope(hcp *hyperv1.HostedControlPlane, objects ...client.Object) *component.Scope {
	c := fake.NewClientBuilder().WithScheme(fixture.Scheme()).WithObjects(append(objects, hcp)...).
		WithStatusSubresource(&hyperv1.ControlPlaneComponent{}, &hyperv1.HostedControlPlane{},
			&certificatesv1.CertificateSigningRequest{}, &certificatesv1alpha1.CertificateRevocationRequest{}).Build()
	return &component.Scope{
		Client: c, HCP: hcp, Version: "1.36.3", Images: kubernetesPayload(),
		Infra: &component.Infra{
			API:      component.Endpoint{Host: "192.0.2.10", Port: 30443},
			Ignition: component.Endpoint{Host: "192.0.2.10"},
		},
	}
}

// withPKI creates the real Secrets and ConfigMaps of the control plane in the scope's fake cluster.
func withPKI(t testing.TB, scope *component.Scope) *component.Scope {
	t.Helper()
	r := &pki.Reconciler{Client: scope.Client, Clock: clocktesting.NewFakePassiveClock(time.Now())}
	if err := r.Reconcile(t.Context(), scope.HCP, scope.Infra); err != nil {
		t.Fatal(err)
	}
	return scope
}

// golden compares text with a file under testdata, or writes the file when UPDATE=1 is set.
func golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with UPDATE=1 to write it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs from what is rendered (-file +rendered); if that is intended, run the test with UPDATE=1:\n%s", path, diff)
	}
}
