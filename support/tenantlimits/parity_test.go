// SPDX-License-Identifier: Apache-2.0

package tenantlimits_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/tenantlimits"
)

// server evaluates the policy for one kind of object as an API server does.
type server struct {
	t                    *testing.T
	limits               *tenantlimits.Limits
	policy               *admissionv1.ValidatingAdmissionPolicy
	validations, matches []cel.Program
}

func newServer(t *testing.T, l *tenantlimits.Limits, resource string) *server {
	t.Helper()
	s := &server{t: t, limits: l}
	for _, obj := range l.Objects() {
		policy, ok := obj.(*admissionv1.ValidatingAdmissionPolicy)
		if ok && slices.Contains(policy.Spec.MatchConstraints.ResourceRules[0].Resources, resource) {
			s.policy = policy
		}
	}
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).NewExpressionsEnv().Extend(
		cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range s.policy.Spec.Validations {
		s.validations = append(s.validations, compiled(t, env, v.Expression))
	}
	for _, m := range s.policy.Spec.MatchConditions {
		s.matches = append(s.matches, compiled(t, env, m.Expression))
	}
	return s
}

func compiled(t *testing.T, env *cel.Env, expression string) cel.Program {
	t.Helper()
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return program
}

func (s *server) holds(program cel.Program, obj, old client.Object) bool {
	s.t.Helper()
	values := map[string]any{"object": content(s.t, obj), "oldObject": nil}
	if old != nil {
		values["oldObject"] = content(s.t, old)
	}
	result, _, err := program.Eval(values)
	if err != nil {
		s.t.Fatal(err)
	}
	return result.Value() == true
}

func content(t *testing.T, obj client.Object) map[string]any {
	t.Helper()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// refusals returns the messages for a created object, or for an update of old.
func (s *server) refusals(obj, old client.Object) []string {
	s.t.Helper()
	for _, match := range s.matches {
		if !s.holds(match, obj, old) {
			return nil
		}
	}
	var messages []string
	for i, v := range s.validations {
		if !s.holds(v, obj, nil) {
			messages = append(messages, s.policy.Spec.Validations[i].Message)
		}
	}
	return messages
}

// limited returns limits that allow some values in each list.
func limited() *tenantlimits.Limits {
	return &tenantlimits.Limits{
		Registries: []string{"a.example", "quay.io/okd", "b.example:5000/team*"}, ImageAnnotations: []string{"cluster-autoscaler-image"},
		PriorityClasses: []string{"mine", "team-*"}, NodeLabels: []string{"team", "hypershift.openshift.io/*"}, Taints: []string{"team"},
		Networks: []string{"shared/blue", "public/*"}, HostDevices: []string{"example.com/gpu"},
		Domains:   []string{"clusters.example", ".red.example"},
		Resources: []string{"cpu=2", "memory=4Gi"},
	}
}

const release = "a.example/release:1"

func cluster(change func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "tenant"}}
	// The schema requires these fields.
	hc.Spec.Release.Image, hc.Spec.Services = release, []hyperv1.ServicePublishingStrategyMapping{}
	if change != nil {
		change(hc)
	}
	return hc
}

func annotated(key, value string) *hyperv1.HostedCluster {
	return cluster(func(hc *hyperv1.HostedCluster) { hc.Annotations = map[string]string{key: value} })
}

// agree checks that the API server and the operator return the same result. The operator must catch what the API server
// misses.
func (s *server) agree(t *testing.T, hc *hyperv1.HostedCluster, allowed bool) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(len(s.limits.HostedCluster(hc)) == 0).To(Equal(allowed), "the operator: %v", s.limits.HostedCluster(hc))
	refused := s.refusals(hc, nil)
	g.Expect(len(refused) == 0).To(Equal(allowed), "the API server: %v", refused)
	g.Expect(refused).NotTo(ContainElement(""))
	flags := regexp.MustCompile("--(allowed|max)-[a-z-]+|spec.[a-zA-Z.]+[iI]mage[a-zA-Z]*|spec.labels")
	g.Expect(flags.FindAllString(strings.Join(refused, " "), -1)).To(ConsistOf(flags.FindAllString(strings.Join(s.limits.HostedCluster(hc), " "), -1)),
		"both name the same field, and what an administrator can change")
}

func TestImages(t *testing.T) {
	clusters, pools := newServer(t, limited(), "hostedclusters"), newServer(t, limited(), "nodepools")
	for image, allowed := range map[string]bool{
		"":                                    true,
		"a.example/release:1":                 true,
		"a.example/deep/er/release@sha256:0":  true,
		"a.example":                           false,
		"a.example:5000/release:1":            false,
		"a.example.evil.example/release:1":    false,
		"evil.example/a.example/release:1":    false,
		"quay.io/okd/release:1":               true,
		"quay.io/okd:1":                       true,
		"quay.io/okd@sha256:0":                true,
		"quay.io/okd-evil/release:1":          false,
		"quay.io/release:1":                   false,
		"b.example:5000/team-red/release:1":   true,
		"b.example:5000/tea/release:1":        false,
		"release:1":                           false,
		"quay.io/okd/../evil/release:1":       false,
		"quay.io/okd/./../evil/release:1":     false,
		"quay.io/okd/..":                      false,
		"b.example:5000/team/../evil/image:1": false,
		"a.example/release..old:1.2":          true,
	} {
		t.Run("When an image is "+image+", every field with an image should be checked alike", func(t *testing.T) {
			for _, name := range []func(*hyperv1.HostedCluster){
				func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = image },
				func(hc *hyperv1.HostedCluster) { hc.Spec.ControlPlaneRelease = &hyperv1.Release{Image: image} },
				func(hc *hyperv1.HostedCluster) {
					hc.Spec.ImageContentSources = []hyperv1.ImageContentSource{{Source: "x", Mirrors: []string{release, image}}}
				},
				func(hc *hyperv1.HostedCluster) {
					hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{KMS: &hyperv1.KMSSpec{Plugin: &hyperv1.KMSPluginSpec{Image: image}}}
				},
			} {
				clusters.agree(t, cluster(name), allowed)
			}
			pool := &hyperv1.NodePool{}
			pool.Spec.Release.Image = image
			g := NewWithT(t)
			g.Expect(len(pools.limits.NodePool(pool)) == 0).To(Equal(allowed))
			g.Expect(len(pools.refusals(pool, nil)) == 0).To(Equal(allowed))
		})
	}
}

func TestAnnotations(t *testing.T) {
	const domain = "hypershift.openshift.io/"
	clusters := newServer(t, limited(), "hostedclusters")
	for name, tc := range map[string]struct {
		key, value string
		allowed    bool
	}{
		"an allowed image":             {domain + "cluster-autoscaler-image", "a.example/x:1", true},
		"an image of another registry": {domain + "cluster-autoscaler-image", "evil.example/x:1", false},
		"several images of which one is forbidden": {domain + "cluster-autoscaler-image", "a=a.example/x:1, b=evil.example/x:1",
			false},
		"several images that are allowed":                 {domain + "cluster-autoscaler-image", "a=a.example/x:1, b=a.example/y:1", true},
		"an image with another name":                      {domain + "other-image", "x", false},
		"several images":                                  {domain + "other-images", "x", false},
		"overrides of images":                             {domain + "image-overrides", "x", false},
		"overrides of registries":                         {domain + "control-plane-registry-overrides", "x", false},
		"an empty image":                                  {domain + "other-image", "", true},
		"an image in another domain":                      {"example.com/other-image", "x", true},
		"a name that only begins like that of an image":   {domain + "image-pull-policy", "x", true},
		"a priority class":                                {hyperv1.EtcdPriorityClass, "mine", true},
		"a priority class with an allowed prefix":         {hyperv1.ControlPlanePriorityClass, "team-red", true},
		"a forbidden priority class":                      {hyperv1.APICriticalPriorityClass, "system-node-critical", false},
		"a forbidden priority class for all":              {hyperv1.ControlPlanePriorityClass, "system-node-critical", false},
		"a forbidden priority class for etcd":             {hyperv1.EtcdPriorityClass, "system-node-critical", false},
		"a priority class with an allowed name as prefix": {hyperv1.EtcdPriorityClass, "mine-too", false},
		"no priority class":                               {hyperv1.EtcdPriorityClass, "", true},
		"a selector":                                      {hyperv1.RequestServingNodeAdditionalSelectorAnnotation, "team=red", true},
		"two selectors":                                   {hyperv1.RequestServingNodeAdditionalSelectorAnnotation, "team=red,hypershift.openshift.io/x=y", true},
		"a forbidden selector after an allowed one":       {hyperv1.RequestServingNodeAdditionalSelectorAnnotation, "team=red,other=", false},
		"a forbidden selector without an equals sign":     {hyperv1.RequestServingNodeAdditionalSelectorAnnotation, "other", false},
		"a selector that ends with a comma":               {hyperv1.RequestServingNodeAdditionalSelectorAnnotation, "team=red,", true},
		"a selector with a space":                         {hyperv1.RequestServingNodeAdditionalSelectorAnnotation, "team=red, other=", false},
	} {
		t.Run("When an annotation is "+name+", API server and operator should agree", func(t *testing.T) {
			clusters.agree(t, annotated(tc.key, tc.value), tc.allowed)
		})
	}
}

func TestPlacesOfPods(t *testing.T) {
	clusters := newServer(t, limited(), "hostedclusters")
	selects := func(key string) *hyperv1.HostedCluster {
		return cluster(func(hc *hyperv1.HostedCluster) { hc.Spec.NodeSelector = map[string]string{"team": "red", key: ""} })
	}
	tolerates := func(toleration corev1.Toleration) *hyperv1.HostedCluster {
		return cluster(func(hc *hyperv1.HostedCluster) { hc.Spec.Tolerations = []corev1.Toleration{{Key: "team"}, toleration} })
	}
	labelled := func(key string) *hyperv1.HostedCluster {
		return cluster(func(hc *hyperv1.HostedCluster) { hc.Spec.Labels = map[string]string{key: "x"} })
	}
	for name, tc := range map[string]struct {
		hc      *hyperv1.HostedCluster
		allowed bool
	}{
		"a node selector with an allowed label":                   {selects("team"), true},
		"a node selector with one of our labels":                  {selects("hypershift.openshift.io/control-plane"), true},
		"a node selector with a forbidden label":                  {selects("node-role.kubernetes.io/control-plane"), false},
		"a node selector with a label that has an allowed prefix": {selects("teams"), false},
		"an allowed taint":                                        {tolerates(corev1.Toleration{Key: "team", Operator: corev1.TolerationOpExists}), true},
		"another taint":                                           {tolerates(corev1.Toleration{Key: "node-role.kubernetes.io/control-plane"}), false},
		"every taint":                                             {tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists}), false},
		"an allowed label":                                        {labelled("team"), true},
		"one of our pod labels":                                   {labelled("hypershift.openshift.io/need-management-kas-access"), false},
		"a label in a subdomain of ours":                          {labelled("x.hypershift.openshift.io/y"), false},
		"a label in a domain that ends with ours":                 {labelled("xhypershift.openshift.io/y"), true},
		"a label of virtual machines":                             {labelled("kubevirt.io"), false},
		"another label of virtual machines":                       {labelled("vm.kubevirt.io/name"), false},
		"a label that Services select":                            {labelled("app"), false},
		"a label similar to one that Services select":             {labelled("app.kubernetes.io/name"), true},
		"nothing at all":                                          {cluster(nil), true},
		"annotations that are all empty":                          {annotated("", ""), true},
	} {
		t.Run("When a tenant chooses "+name+", API server and operator should agree", func(t *testing.T) {
			clusters.agree(t, tc.hc, tc.allowed)
		})
	}
}

func TestEverythingAndNothing(t *testing.T) {
	all := []string{"*"}
	greedy := cluster(func(hc *hyperv1.HostedCluster) {
		hc.Annotations = map[string]string{hyperv1.ControlPlaneOperatorImageAnnotation: "x", hyperv1.EtcdPriorityClass: "system-node-critical",
			hyperv1.RequestServingNodeAdditionalSelectorAnnotation: "other=x"}
		hc.Spec.Release.Image = "evil.example/release:1"
		hc.Spec.NodeSelector = map[string]string{"other": ""}
		hc.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	t.Run("When everything is allowed, it should refuse nothing", func(t *testing.T) {
		l := &tenantlimits.Limits{Registries: all, ImageAnnotations: all, PriorityClasses: all, NodeLabels: all, Taints: all}
		newServer(t, l, "hostedclusters").agree(t, greedy, true)
	})
	t.Run("When nothing is allowed, it should refuse everything", func(t *testing.T) {
		s := newServer(t, &tenantlimits.Limits{}, "hostedclusters")
		s.agree(t, greedy, false)
		g := NewWithT(t)
		refusals := s.limits.HostedCluster(greedy)
		g.Expect(refusals).To(HaveLen(6))
		g.Expect(slices.IsSorted(refusals)).To(BeTrue(), "a condition must not change with the order of a map")
		g.Expect(s.refusals(greedy, nil)).To(HaveLen(6))
	})
	t.Run("When there are no limits, it should refuse nothing", func(t *testing.T) {
		g, l := NewWithT(t), (*tenantlimits.Limits)(nil)
		g.Expect(l.HostedCluster(greedy)).To(BeEmpty())
		g.Expect(l.NodePool(&hyperv1.NodePool{})).To(BeEmpty())
	})
}

// TestWhatWasThereBefore checks that objects which violated a limit before it existed can be deleted, and that
// controllers can update them.
func TestWhatWasThereBefore(t *testing.T) {
	s := newServer(t, limited(), "hostedclusters")
	before := cluster(func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = "evil.example/release:1" })
	for name, tc := range map[string]struct {
		change  func(*hyperv1.HostedCluster)
		refused bool
	}{
		"its finalizers change":                   {func(hc *hyperv1.HostedCluster) { hc.Finalizers = []string{"x/y"} }, false},
		"its labels change":                       {func(hc *hyperv1.HostedCluster) { hc.Labels = map[string]string{"a": "b"} }, false},
		"it is being deleted":                     {func(hc *hyperv1.HostedCluster) { hc.DeletionTimestamp = &metav1.Time{}; hc.Spec.InfraID = "x" }, false},
		"its spec changes":                        {func(hc *hyperv1.HostedCluster) { hc.Spec.InfraID = "x" }, true},
		"its annotations change":                  {func(hc *hyperv1.HostedCluster) { hc.Annotations = map[string]string{"a": "b"} }, true},
		"its image becomes an allowed one":        {func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = release }, false},
		"its image becomes another forbidden one": {func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image += "2" }, true},
	} {
		t.Run("When "+name+", it should be refused only if spec or annotations change and violate a limit", func(t *testing.T) {
			after := before.DeepCopy()
			tc.change(after)
			NewWithT(t).Expect(len(s.refusals(after, before)) > 0).To(Equal(tc.refused))
		})
	}
}

// TestBindings checks the bindings. A policy without a binding, or one that is skipped when it fails, refuses nothing.
func TestBindings(t *testing.T) {
	g := NewWithT(t)
	bound := map[string]bool{}
	var policies []string
	for _, obj := range limited().Objects() {
		switch o := obj.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			policies = append(policies, o.Name)
			g.Expect(o.Spec.Validations).NotTo(BeEmpty())
			g.Expect(o.Spec.FailurePolicy).To(HaveValue(Equal(admissionv1.Fail)))
			rule := o.Spec.MatchConstraints.ResourceRules[0]
			g.Expect(rule.Operations).To(ConsistOf(admissionv1.Create, admissionv1.Update))
			g.Expect(rule.APIGroups).To(ConsistOf(hyperv1.GroupVersion.Group))
			g.Expect(rule.APIVersions).To(ConsistOf("*"), "another version of an object is no way around")
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			g.Expect(o.Spec.ValidationActions).To(ConsistOf(admissionv1.Deny))
			bound[o.Spec.PolicyName] = true
			g.Expect(o.Name).To(Equal(o.Spec.PolicyName), "who looks for one finds the other")
		}
	}
	g.Expect(policies).To(HaveLen(2))
	g.Expect(policies[0]).NotTo(Equal(policies[1]))
	for _, name := range policies {
		g.Expect(bound).To(HaveKey(name))
		g.Expect(strings.HasPrefix(name, tenantlimits.Name)).To(BeTrue())
	}
}
