// SPDX-License-Identifier: Apache-2.0

package v2

import (
	"bytes"
	"os"
	"slices"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	configv1 "github.com/openshift/api/config/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/fixture"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/upsert"
)

func TestManifests(t *testing.T) {
	cases := []struct {
		name    string
		edit    func(*hyperv1.HostedControlPlane)
		objects []client.Object
	}{
		{name: "minimal", edit: func(*hyperv1.HostedControlPlane) {}},
		{name: "highly-available", edit: highlyAvailable},
		{name: "everything", edit: everything, objects: everythingNeeds(t)},
	}
	for _, tc := range cases {
		t.Run("When a control plane is "+tc.name+" it should render the manifests of the golden file", func(t *testing.T) {
			scope := newScope(controlPlane(tc.edit), tc.objects...)
			scope.Images.(payload)["cluster-autoscaler"] = "registry.example/payload/cluster-autoscaler@sha256:0001"
			for _, c := range Kubernetes(Config{ConfigOperatorImage: "registry.example/hypershift:latest"}) {
				ready(t, scope, c.Dependencies...)
				if err := c.Reconcile(t.Context(), scope); err != nil {
					t.Fatalf("component %s: %v", c.Name, err)
				}
				ready(t, scope, c.Name)
			}
			golden(t, tc.name+".yaml", dump(t, scope))
		})
	}
}

// everything sets all options of a control plane.
func everything(hcp *hyperv1.HostedControlPlane) {
	hcp.Annotations = map[string]string{
		"hypershift.openshift.io/kube-apiserver-gogc":                                          "50",
		"hypershift.openshift.io/kube-apiserver-gomemlimit":                                    "4GiB",
		"hypershift.openshift.io/kube-apiserver-max-requests-inflight":                         "500",
		"hypershift.openshift.io/disable-profiling":                                            "kube-apiserver,kube-controller-manager",
		"hypershift.openshift.io/restart-date":                                                 "2026-11-20",
		"hypershift.openshift.io/etcd-priority-class":                                          "gold",
		"resource-request-override.hypershift.openshift.io/kube-apiserver.kube-apiserver":      "cpu=2,memory=4Gi",
		"resource-request-override.hypershift.openshift.io/kube-scheduler.availability-prober": "cpu=5m",
	}
	hcp.Spec.NodeSelector = map[string]string{"pool": "control-planes"}
	hcp.Spec.Tolerations = []corev1.Toleration{{Key: "reserved", Operator: corev1.TolerationOpExists}}
	hcp.Spec.Labels = map[string]string{"team": "metal"}
	hcp.Spec.AuditWebhook = &corev1.LocalObjectReference{Name: "audit-webhook"}
	hcp.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "user-ca-bundle"}
	hcp.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{
		Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: "etcd-key"}},
	}
	hcp.Spec.Autoscaling = hyperv1.ClusterAutoscaling{
		Scaling:                hyperv1.ScaleUpAndScaleDown,
		ScaleDown:              &hyperv1.ScaleDownConfig{DelayAfterAddSeconds: ptr.To[int32](60), UtilizationThresholdPercent: ptr.To[int32](30)},
		BalancingIgnoredLabels: []string{"example.com/rack"},
		Expanders:              []hyperv1.ExpanderString{hyperv1.RandomExpander},
	}
	hcp.Spec.Configuration = &hyperv1.ClusterConfiguration{
		APIServer: &configv1.APIServerSpec{
			ClientCA: configv1.ConfigMapNameReference{Name: "house-ca"},
			Audit: configv1.Audit{
				Profile: configv1.WriteRequestBodiesAuditProfileType,
				CustomRules: []configv1.AuditCustomRule{
					{Group: "system:serviceaccounts", Profile: configv1.NoneAuditProfileType}, {Group: "auditors", Profile: configv1.AllRequestBodiesAuditProfileType},
				},
			},
			TLSSecurityProfile: &configv1.TLSSecurityProfile{Type: configv1.TLSProfileModernType, Modern: &configv1.ModernTLSProfile{}},
			ServingCerts: configv1.APIServerServingCerts{NamedCertificates: []configv1.APIServerNamedServingCert{{
				Names: []string{"api.example.com"}, ServingCertificate: configv1.SecretNameReference{Name: "api-cert"},
			}}},
		},
		Authentication: &configv1.AuthenticationSpec{
			Type: configv1.AuthenticationTypeOIDC,
			OIDCProviders: []configv1.OIDCProvider{{
				Name: "sso",
				Issuer: configv1.TokenIssuer{
					URL: "https://sso.example.com", Audiences: []configv1.TokenAudience{"demo"},
					CertificateAuthority: configv1.ConfigMapNameReference{Name: "issuer-ca"},
				},
				ClaimMappings: configv1.TokenClaimMappings{
					Username: configv1.UsernameClaimMapping{Claim: "sub"},
					Groups:   configv1.PrefixedClaimMapping{TokenClaimMapping: configv1.TokenClaimMapping{Claim: "groups"}, Prefix: "sso:"},
				},
				UserValidationRules: []configv1.TokenUserValidationRule{{Expression: "user.username.contains('@')", Message: "no address"}},
			}},
		},
		FeatureGate: &configv1.FeatureGateSpec{FeatureGateSelection: configv1.FeatureGateSelection{
			FeatureSet: configv1.CustomNoUpgrade, CustomNoUpgrade: &configv1.CustomFeatureGates{Enabled: []configv1.FeatureGateName{"MutatingAdmissionPolicy"}},
		}},
		Network:   &configv1.NetworkSpec{ServiceNodePortRange: "31000-31999"},
		Scheduler: &configv1.SchedulerSpec{Profile: configv1.HighNodeUtilization},
	}
}

// everythingNeeds returns the objects that everything refers to, and one that the PKI would create with random content.
func everythingNeeds(t testing.TB) []client.Object {
	ca := readFile(t, "testdata/ca.pem")
	return []client.Object{
		secret("etcd-key", map[string][]byte{"key": bytes.Repeat([]byte{7}, 32)}),
		secret("audit-webhook", map[string][]byte{"webhook-kubeconfig": []byte(readFile(t, "testdata/audit-webhook.kubeconfig"))}),
		bundle("issuer-ca", ca), bundle("house-ca", ca),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "client-ca"}, Data: map[string]string{"ca.crt": ca}},
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// ready marks components as rolled out, so that components that depend on them continue.
func ready(t testing.TB, scope *component.Scope, names ...string) {
	t.Helper()
	for _, name := range names {
		cpc := &hyperv1.ControlPlaneComponent{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := scope.Client.Get(t.Context(), client.ObjectKeyFromObject(cpc), cpc); err != nil {
			t.Fatalf("component %s left no report: %v", name, err)
		}
		cpc.Status.Version = scope.Version
		cpc.Status.Conditions = nil
		for _, condition := range []string{string(hyperv1.ControlPlaneComponentAvailable), string(hyperv1.ControlPlaneComponentRolloutComplete)} {
			cpc.Status.Conditions = append(cpc.Status.Conditions, metav1.Condition{
				Type: condition, Status: metav1.ConditionTrue, Reason: "AsExpected", LastTransitionTime: metav1.Time{Time: now},
			})
		}
		if err := scope.Client.Status().Update(t.Context(), cpc); err != nil {
			t.Fatal(err)
		}
	}
}

// dump returns all objects that components created, without what the server adds.
func dump(t testing.TB, scope *component.Scope) string {
	t.Helper()
	var documents []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{},
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &policyv1.PodDisruptionBudgetList{},
		&monitoringv1.ServiceMonitorList{}, &monitoringv1.PodMonitorList{}, &monitoringv1.PrometheusRuleList{},
	} {
		if err := scope.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, render(t, list)...)
	}
	slices.Sort(documents)
	var all bytes.Buffer
	for _, d := range documents {
		all.WriteString("---\n" + d)
	}
	return all.String()
}

func render(t testing.TB, list client.ObjectList) []string {
	t.Helper()
	var documents []string
	err := eachObject(list, func(obj client.Object) {
		if len(obj.GetOwnerReferences()) == 0 {
			return
		}
		gvk, err := apiutil.GVKForObject(obj, fixture.Scheme())
		if err != nil {
			t.Fatal(err)
		}
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		obj.SetResourceVersion("")
		obj.SetManagedFields(nil)
		obj.SetOwnerReferences(nil)
		annotations := obj.GetAnnotations()
		delete(annotations, upsert.HashAnnotation)
		obj.SetAnnotations(annotations)
		raw, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(raw))
	})
	if err != nil {
		t.Fatal(err)
	}
	return documents
}
