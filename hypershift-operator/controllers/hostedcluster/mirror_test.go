// SPDX-License-Identifier: Apache-2.0

package hostedcluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// texts are labels or annotations.
type texts = map[string]string

// mirrored holds the previous labels or annotations of a control plane, those of the cluster, and the expected result.
type mirrored struct {
	name               string
	had, cluster, want texts
}

func (m mirrored) check(t *testing.T, got texts) {
	t.Helper()
	if diff := cmp.Diff(m.want, got); diff != "" {
		t.Error("-want +got\n" + diff)
	}
}

func TestMirroredLabels(t *testing.T) {
	for _, tc := range []mirrored{
		{"When the cluster has labels with the prefix, it should copy those and no others",
			texts{"own": "1"}, texts{"api.openshift.com/team": "a", "mine": "b"}, texts{"own": "1", "api.openshift.com/team": "a"}},
		{"When a label changes on the cluster, it should change on the control plane",
			texts{"api.openshift.com/team": "a"}, texts{"api.openshift.com/team": "b"}, texts{"api.openshift.com/team": "b"}},
		{"When a label is removed from the cluster, it should be removed from the control plane, and others kept",
			texts{"own": "1", "api.openshift.com/team": "a"}, nil, texts{"own": "1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hc, hcp := &hyperv1.HostedCluster{}, &hyperv1.HostedControlPlane{}
			hc.Labels, hcp.Labels = tc.cluster, tc.had
			mirrorLabels(hc, hcp)
			tc.check(t, hcp.Labels)
		})
	}
}

func TestMirroredAnnotations(t *testing.T) {
	const (
		override = hyperv1.ResourceRequestOverrideAnnotationPrefix + "/etcd.etcd"
		provider = hyperv1.IdentityProviderOverridesAnnotationPrefix + "github"
		switched = hyperv1.DisablePKIReconciliationAnnotation
		restart  = hyperv1.RestartDateAnnotation
		restarts = hyperv1.PreviousRestartDateAnnotation
	)
	for _, tc := range []mirrored{
		{"When the cluster has annotations for the control plane, it should copy those and no others",
			texts{"own": "1"}, texts{override: "cpu=1", provider: "x", switched: "true", "mine": "b"}, texts{"own": "1", override: "cpu=1", provider: "x", switched: "true"}},
		{"When the annotations change on the cluster, they should change on the control plane",
			texts{override: "cpu=1", switched: "true"}, texts{override: "cpu=2", switched: "false"}, texts{override: "cpu=2", switched: "false"}},
		{"When the annotations are removed from the cluster, they should be removed from the control plane",
			texts{"own": "1", override: "cpu=1", provider: "x", switched: "true"}, nil, texts{"own": "1"}},
		{"When an annotation has an empty value, it should still be copied",
			nil, texts{hyperv1.DisableMachineManagement: ""}, texts{hyperv1.DisableMachineManagement: ""}},
		{"When a restart is requested, it should be recorded as propagated",
			nil, texts{restart: "now"}, texts{restart: "now", restarts: "now"}},
		{"When another writer has requested a restart since, the old request should not overwrite it",
			texts{restart: "by another", restarts: "now"}, texts{restart: "now"}, texts{restart: "by another", restarts: "now"}},
		{"When another restart is requested, it should be propagated too",
			texts{restart: "by another", restarts: "now"}, texts{restart: "later"}, texts{restart: "later", restarts: "later"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hc, hcp := &hyperv1.HostedCluster{}, &hyperv1.HostedControlPlane{}
			hc.Annotations, hcp.Annotations = tc.cluster, tc.had
			mirrorAnnotations(hc, hcp)
			tc.check(t, hcp.Annotations)
		})
	}
}

// TestEveryMirroredAnnotation lists each annotation by the name that users and other tools write. A renamed or missing
// annotation would have no effect.
func TestEveryMirroredAnnotation(t *testing.T) {
	wanted := texts{"oauth.hypershift.openshift.io/login-url-override": "x"}
	for _, name := range []string{
		"api-critical-priority-class", "aws-kms-provider-image", "certificate-renewal", "certificate-validity",
		"certified-operators-catalog-image", "cleanup-cloud-resources", "cluster-autoscaler-image", "community-operators-catalog-image",
		"control-plane-priority-class", "debug-deployments", "disable-ignition-server", "disable-machine-management",
		"disable-monitoring-services", "disable-pki-reconciliation", "disable-profiling", "enable-metrics-forwarding",
		"ensureexists-pullsecret-reconcile", "etcd-priority-class", "former-address-overlap", "former-signer-overlap",
		"ibmcloud-kms-provider-image", "ingress-controller-load-balancer-scope", "konnectivity-agent-image", "konnectivity-server-image",
		"kube-apiserver-goaway-chance", "kube-apiserver-gogc", "kube-apiserver-gomemlimit", "kube-apiserver-max-mutating-requests-inflight",
		"kube-apiserver-max-requests-inflight", "kube-apiserver-service-account-token-max-expiration", "kube-apiserver-verbosity-level",
		"management-platform", "olm-catalogs-is-registry-overrides", "portieris-image", "private-ingress-controller",
		"redhat-marketplace-catalog-image", "redhat-operators-catalog-image", "request-serving-node-additional-selector", "restored-from-backup",
		"restoring", "rotate-signers", "topology",
	} {
		wanted["hypershift.openshift.io/"+name] = "x"
	}
	hc, hcp := &hyperv1.HostedCluster{}, &hyperv1.HostedControlPlane{}
	hc.Annotations = wanted
	mirrorAnnotations(hc, hcp)
	mirrored{want: wanted}.check(t, hcp.Annotations)
	NewWithT(t).Expect(mirroredAnnotations).To(HaveLen(len(wanted)), "one that is mirrored has no place here")
}

func TestAutoscalerIsWanted(t *testing.T) {
	c := fixture.Start(t)
	s := newWorld(t, c, "autoscaler")
	s.start(nil)
	s.mustPass()
	s.Expect(s.controlPlane().Annotations).To(HaveKeyWithValue(hyperv1.DisableClusterAutoscalerAnnotation, "true"), "nothing scales")
	pool := fixture.NodePool(s.namespace)
	pool.Spec.Replicas, pool.Spec.AutoScaling = nil, &hyperv1.NodePoolAutoScaling{Min: ptr.To[int32](1), Max: 3}
	pool.Name, pool.Spec.ClusterName = "of-another", "another-cluster"
	fixture.Create(t, c, pool)
	s.mustPass()
	s.Expect(s.controlPlane().Annotations).To(HaveKey(hyperv1.DisableClusterAutoscalerAnnotation), "another cluster's pool is none of this one's")
	own := fixture.NodePool(s.namespace)
	own.Spec.Replicas, own.Spec.AutoScaling = nil, pool.Spec.AutoScaling
	fixture.Create(t, c, own)
	s.mustPass()
	s.Expect(s.controlPlane().Annotations).NotTo(HaveKey(hyperv1.DisableClusterAutoscalerAnnotation))
}
