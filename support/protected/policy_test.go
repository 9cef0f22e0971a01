// SPDX-License-Identifier: Apache-2.0

package protected_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/protected"
)

// users are the users of the tests. One has the right to administer.
type users struct{ authorizer.Authorizer }

func (users) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	right := a.GetVerb() == protected.Right && a.GetResource() == "hostedclusters" &&
		a.GetAPIGroup() == "hypershift.openshift.io" && a.GetNamespace() == ""
	if right && a.GetUser().GetName() == "operator" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// refusals returns the policy's messages for a user that changes before into after; before is nil for a creation.
func refusals(t *testing.T, suffix, name string, before, after client.Object) []string {
	t.Helper()
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).NewExpressionsEnv().Extend(
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
		cel.Variable("authorizer", library.AuthorizerType))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"object": content(t, after), "oldObject": nil,
		"authorizer": library.NewAuthorizerVal(&user.DefaultInfo{Name: name}, users{})}
	if before != nil {
		values["oldObject"] = content(t, before)
	}
	evaluate := func(expression string) any {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", expression, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		result, _, err := program.Eval(values)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		return result.Value()
	}
	policy := policyOf(t, suffix)
	for _, match := range policy.Spec.MatchConditions {
		if evaluate(match.Expression) != true {
			return nil
		}
	}
	var messages []string
	for _, v := range policy.Spec.Validations {
		if evaluate(v.Expression) == true {
			continue
		}
		message := v.Message
		if v.MessageExpression != "" {
			message, _ = evaluate(v.MessageExpression).(string)
		}
		messages = append(messages, message)
	}
	return messages
}

func policyOf(t *testing.T, suffix string) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	for _, obj := range protected.Objects() {
		if policy, ok := obj.(*admissionv1.ValidatingAdmissionPolicy); ok && policy.Name == protected.Name+suffix {
			return policy
		}
	}
	t.Fatalf("there is no policy %s", suffix)
	return nil
}

func content(t *testing.T, obj client.Object) map[string]any {
	t.Helper()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

type texts = map[string]string

func clusterWith(annotations, labels texts, finalizers ...string) *hyperv1.HostedCluster {
	return &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: "demo", Annotations: annotations, Labels: labels, Finalizers: finalizers}}
}

func poolWith(annotations texts, finalizers ...string) *hyperv1.NodePool {
	return &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "demo", Annotations: annotations,
		Finalizers: finalizers}}
}

func TestPolicies(t *testing.T) {
	const ours, rotate = hyperv1.HostedClusterFinalizer, hyperv1.RotateSignersAnnotation
	resolved := texts{hyperv1.NodePoolResolvedReleaseAnnotation: "a b"}
	namespace := func(annotations, labels texts) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-demo", Annotations: annotations, Labels: labels}}
	}
	secret := func(annotations texts) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "x", Annotations: annotations}}
	}
	for name, tc := range map[string]struct {
		suffix        string
		before, after client.Object
		says          string
	}{
		"creates a cluster": {"-clusters", nil, clusterWith(nil, nil), ""},
		"restarts the control plane": {"-clusters", clusterWith(nil, nil, ours),
			clusterWith(texts{hyperv1.RestartDateAnnotation: "now"}, nil, ours), ""},
		"removes another controller's finalizer": {"-clusters", clusterWith(nil, nil, ours, "x/y"), clusterWith(nil, nil, ours),
			""},
		"adds the operator's finalizer": {"-clusters", nil, clusterWith(nil, nil, ours), ""},
		"removes the operator's finalizer": {"-clusters", clusterWith(nil, nil, ours, "x/y"), clusterWith(nil, nil, "x/y"),
			"finalizer hypershift.openshift.io/finalizer of this HostedCluster"},
		"removes all finalizers": {"-clusters", clusterWith(nil, nil, ours), clusterWith(nil, nil),
			"is removed by the operator"},
		"disables the deletion of the namespace": {"-clusters", clusterWith(nil, nil),
			clusterWith(texts{hyperv1.SkipDeleteHostedControlPlaneNamespaceAnnotation: "true"}, nil),
			"skip-delete-hosted-controlplane-namespace"},
		"takes over machines": {"-clusters", nil,
			clusterWith(texts{hyperv1.RestoredInfrastructureAnnotation: "uid"}, nil),
			"restored-infrastructure of this HostedCluster"},
		"sets a protected key to an empty value": {"-clusters", nil,
			clusterWith(texts{hyperv1.RestoredInfrastructureAnnotation: ""}, nil), "restored-infrastructure"},
		"silences alerts": {"-clusters", clusterWith(nil, nil),
			clusterWith(nil, texts{hyperv1.SilenceClusterAlertsLabel: "true"}),
			"label hypershift.openshift.io/silence-cluster-alerts"},
		"rotates its own signers": {"-clusters", clusterWith(nil, nil),
			clusterWith(texts{rotate: "all=1,system-admin-signer=2"}, nil), ""},
		"rotates the provider's signer": {"-clusters", clusterWith(nil, nil),
			clusterWith(texts{rotate: "all=1, sre-system-admin-signer=2"}, nil), "belongs to the provider"},
		"reverts the provider's rotation": {"-clusters", clusterWith(texts{rotate: "sre-system-admin-signer=2"}, nil),
			clusterWith(nil, nil), "belongs to the provider"},
		"keeps the provider's rotation": {"-clusters", clusterWith(texts{rotate: "sre-system-admin-signer=2"}, nil),
			clusterWith(texts{rotate: "all=1,sre-system-admin-signer=2"}, nil), ""},
		"scales a pool":      {"-pools", poolWith(resolved, ours), poolWith(resolved, ours), ""},
		"resolves a release": {"-pools", nil, poolWith(resolved), "nodePoolResolvedRelease"},
		"changes a resolved release": {"-pools", poolWith(resolved),
			poolWith(texts{hyperv1.NodePoolResolvedReleaseAnnotation: "a c"}), "nodePoolResolvedRelease"},
		"removes a resolved release": {"-pools", poolWith(resolved), poolWith(nil), "nodePoolResolvedRelease"},
		"removes a pool's finalizer": {"-pools", poolWith(nil, ours), poolWith(nil),
			"of this NodePool is removed by the operator"},
		"writes a Secret": {"-secrets", nil, secret(texts{"a": "b"}), ""},
		"points a Secret to a cluster": {"-secrets", nil,
			secret(texts{hyperv1.HostedClusterAnnotation: "victim/demo"}), "hypershift.openshift.io/cluster of this Secret"},
		"points a ConfigMap to a cluster": {"-configmaps", &corev1.ConfigMap{},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Annotations: texts{hyperv1.HostedClusterAnnotation: "victim/demo"}}}, "of this ConfigMap"},
		"labels a namespace": {"-namespaces", namespace(nil, nil), namespace(nil, texts{"a": "b"}), ""},
		"claims a namespace": {"-namespaces", nil,
			namespace(texts{hyperv1.HostedClusterAnnotation: "tenant/demo"}, nil), "hypershift.openshift.io/cluster"},
		"escapes the policies of Secrets": {"-namespaces", namespace(nil, nil),
			namespace(nil, texts{hyperv1.ControlPlaneNamespaceLabel: "true"}), "hosted-control-plane"},
		"weakens Pod Security": {"-namespaces", namespace(nil, nil),
			namespace(texts{hyperv1.PodSecurityAdmissionLabelOverrideAnnotation: "privileged"}, nil),
			"pod-security-admission-label-override"},
	} {
		t.Run("When a tenant "+name, func(t *testing.T) {
			g := NewWithT(t)
			told := refusals(t, tc.suffix, "tenant", tc.before, tc.after)
			if tc.says == "" {
				g.Expect(told).To(BeEmpty())
				return
			}
			g.Expect(told).To(ConsistOf(ContainSubstring(tc.says)))
			g.Expect(refusals(t, tc.suffix, "operator", tc.before, tc.after)).To(BeEmpty(), "a user with the right may")
		})
	}
}

// TestEveryProtectedKeyIsRefused covers each row of the table: no key is documented without being enforced.
func TestEveryProtectedKeyIsRefused(t *testing.T) {
	suffixes := map[protected.Kind]string{protected.HostedCluster: "-clusters", protected.NodePool: "-pools",
		protected.Secret:    "-secrets",
		protected.ConfigMap: "-configmaps", protected.Namespace: "-namespaces"}
	for _, row := range protected.Table() {
		for _, kind := range row.On {
			if row.Writer == protected.Programs || strings.HasSuffix(row.Key, "*") {
				continue
			}
			plain, marked := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
			switch row.Form {
			case protected.Annotation:
				marked.Annotations = texts{row.Key: "x"}
			case protected.Label:
				marked.Labels = texts{row.Key: "x"}
			case protected.Finalizer:
				marked.Finalizers = []string{row.Key}
			}
			g := NewWithT(t)
			removed := refusals(t, suffixes[kind], "tenant", marked, plain)
			g.Expect(len(removed) > 0).To(Equal(row.Writer != protected.Tenant), "removing %s of a %s: %v", row.Key, kind,
				removed)
			added := refusals(t, suffixes[kind], "tenant", plain, marked)
			g.Expect(len(added) > 0).To(Equal(row.Writer != protected.Tenant && row.Form != protected.Finalizer),
				"adding %s to a %s: %v", row.Key, kind, added)
		}
	}
}

// TestBindings checks the bindings. A policy without a binding, or one that is skipped when it fails, refuses nothing.
func TestBindings(t *testing.T) {
	g, bound := NewWithT(t), map[string]bool{}
	for _, obj := range protected.Objects() {
		switch o := obj.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			g.Expect(o.Spec.FailurePolicy).To(HaveValue(Equal(admissionv1.Fail)))
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			g.Expect(o.Spec.ValidationActions).To(ConsistOf(admissionv1.Deny))
			bound[o.Spec.PolicyName] = true
		}
	}
	g.Expect(bound).To(HaveLen(5))
	for _, suffix := range []string{"-clusters", "-pools", "-secrets", "-configmaps", "-namespaces"} {
		g.Expect(bound).To(HaveKey(policyOf(t, suffix).Name))
	}
}
