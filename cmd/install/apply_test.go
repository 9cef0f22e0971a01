// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

func definition(name, manager string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	_, group, _ := strings.Cut(name, ".")
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crd.Spec.Group = group
	if manager != "" {
		crd.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}}
	}
	for _, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: version, Served: true})
	}
	return crd
}

func TestForeign(t *testing.T) {
	const machines = "machines.cluster.x-k8s.io"
	tests := []struct {
		name   string
		wanted string
		have   *apiextensionsv1.CustomResourceDefinition
		others []string
		says   string
	}{
		{name: "When the CRD does not exist, it should be installed", wanted: machines},
		{name: "When we already own the CRD, it should be updated", wanted: machines, have: definition(machines, FieldOwner, "v1beta2")},
		{name: "When another tool owns a current CRD, it should be left unchanged", wanted: machines, have: definition(machines, "clusterctl", "v1beta1", "v1beta2"), others: []string{machines}},
		{name: "When another tool owns an old CRD, the error should contain the remedy", wanted: machines, have: definition(machines, "clusterctl", "v1beta1"), says: "upgrade that Cluster API"},
		{
			name: "When the CRD belongs to the MAAS provider, it should be replaced, since ours is a superset", wanted: "maasmachines.infrastructure.cluster.x-k8s.io",
			have: definition("maasmachines.infrastructure.cluster.x-k8s.io", "clusterctl", "v1beta1"),
		},
		{
			name: "When the CRD belongs to HyperShift, it should be replaced", wanted: "nodepools.hypershift.openshift.io",
			have: definition("nodepools.hypershift.openshift.io", "kubectl", "v1beta1"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := reader(tt.have)
			others, err := foreign(t.Context(), c, []*apiextensionsv1.CustomResourceDefinition{definition(tt.wanted, "")})
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(others).To(HaveLen(len(tt.others)))
			for _, name := range tt.others {
				g.Expect(others).To(HaveKey(name))
			}
		})
	}
}

// reader returns a client that answers with one CRD, including its managed fields, which the fake client would drop.
func reader(crd *apiextensionsv1.CustomResourceDefinition) client.Client {
	return fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if crd == nil {
				return c.Get(ctx, key, obj, opts...)
			}
			crd.DeepCopyInto(obj.(*apiextensionsv1.CustomResourceDefinition))
			return nil
		},
	}).Build()
}

func TestLookCRDs(t *testing.T) {
	g := NewWithT(t)
	crd := definition("nodepools.hypershift.openshift.io", "")
	wanted := []*apiextensionsv1.CustomResourceDefinition{crd.DeepCopy()}
	state, err := lookCRDs(t.Context(), reader(crd), wanted)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Done).To(BeFalse())
	g.Expect(state.Message).To(ContainSubstring("nodepools"))
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	state, err = lookCRDs(t.Context(), reader(crd), wanted)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(state.Done).To(BeTrue())
	_, err = lookCRDs(t.Context(), reader(nil), wanted)
	g.Expect(err).To(MatchError(ContainSubstring("read CRD nodepools")))
}

func TestWaitAvailable(t *testing.T) {
	g := NewWithT(t)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: operatorName},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
		Status:     appsv1.DeploymentStatus{UpdatedReplicas: 1, AvailableReplicas: 1},
	}
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(deployment).Build()
	var out strings.Builder
	i := &install{Options: Options{namespace: "hypershift"}}
	g.Expect(i.waitAvailable(t.Context(), c, progress.New(&out, clock.RealClock{}))).To(Succeed())
	g.Expect(out.String()).To(ContainSubstring("the operator is available"))
}

func TestApplyResource(t *testing.T) {
	refused := errors.New("no rights")
	class := func(value int32) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "hypershift-etcd"}, Value: value}
	}
	t.Run("When a priority class exists with another value, it should be left unchanged", func(t *testing.T) {
		g := NewWithT(t)
		c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(class(7)).Build()
		g.Expect((&written{}).applyResource(t.Context(), c, class(8))).To(Succeed())
		kept := &schedulingv1.PriorityClass{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Name: "hypershift-etcd"}, kept)).To(Succeed())
		g.Expect(kept.Value).To(BeEquivalentTo(7))
	})
	t.Run("When a priority class is rejected, the error should name it", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused },
		}).Build()
		NewWithT(t).Expect((&written{}).applyResource(t.Context(), c, class(8))).To(MatchError("create PriorityClass hypershift-etcd: no rights"))
	})
	t.Run("When an object is rejected, the error should name it", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				return refused
			},
		}).Build()
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: "operator"}}
		NewWithT(t).Expect((&written{}).applyResource(t.Context(), c, service)).To(MatchError("apply Service hypershift/operator: no rights"))
	})
}

func TestImageRefs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"good.yaml":  "spec: {tags: [{name: hypershift-operator, from: {kind: DockerImage, name: op:1}}, {name: cluster-api-provider-maas, from: {kind: DockerImage, name: maas:1}}, {name: empty}]}",
		"lacks.yaml": "spec: {tags: [{name: cluster-api, from: {kind: DockerImage, name: capi:1}}]}",
		"bad.yaml":   "[",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	tests := []struct {
		name   string
		args   []string
		env    string
		built  string
		image  string
		images map[string]string
		says   string
	}{
		{name: "When no image is given, the error should list where it can come from", says: "--hypershift-image or $HYPERSHIFT_IMAGE"},
		{name: "When the flag sets an image, it should be used", env: "env:1", built: "built:1", args: []string{"--hypershift-image", "flag:1"}, image: "flag:1", images: map[string]string{}},
		{name: "When the environment sets an image, it should override the built-in image", env: "env:1", built: "built:1", image: "env:1", images: map[string]string{}},
		{name: "When only a built-in image is set, it should be used", built: "built:1", image: "built:1", images: map[string]string{}},
		{name: "When no operator Pod is deployed, it should need no image", args: []string{"--development"}, image: developmentImage, images: map[string]string{}},
		{name: "When only CRDs are installed, it should need no image", args: []string{"--install-scope", "crds"}, images: map[string]string{}},
		{name: "When a list of images is given, it should use the known images", args: []string{"--image-refs", in("good.yaml")}, image: "op:1", images: map[string]string{"IMAGE_MAAS_CAPI_PROVIDER": "maas:1"}},
		{
			name: "When the provider image is given too, it should override the list", args: []string{"--image-refs", in("good.yaml"), "--maas-capi-provider-image", "mine:1"},
			image: "op:1", images: map[string]string{"IMAGE_MAAS_CAPI_PROVIDER": "mine:1"},
		},
		{name: "When the list lacks the operator image, it should return an error", args: []string{"--image-refs", in("lacks.yaml")}, says: `no tag "hypershift-operator"`},
		{name: "When the list is not YAML, it should return an error", args: []string{"--image-refs", in("bad.yaml")}, says: "not an ImageStream"},
		{name: "When the list is missing, it should return an error", args: []string{"--image-refs", in("missing.yaml")}, says: "--image-refs"},
		{name: "When the trust bundle is not PEM, it should return an error", args: []string{"--additional-trust-bundle", in("bad.yaml")}, says: "--additional-trust-bundle"},
		{name: "When the pull secret is not JSON, it should return an error", args: []string{"--pull-secret", in("bad.yaml")}, says: "--pull-secret"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv(imageEnv, tt.env)
			builtImage = tt.built
			t.Cleanup(func() { builtImage = "" })
			o := &Options{}
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			o.addFlags(flags)
			g.Expect(flags.Parse(tt.args)).To(Succeed())
			err := o.complete(flags)
			if tt.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(o.image).To(Equal(tt.image))
			g.Expect(o.images).To(Equal(tt.images))
		})
	}
}

func TestWarn(t *testing.T) {
	g := NewWithT(t)
	o := &Options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(flags)
	g.Expect(flags.Parse([]string{"--enable-conversion-webhook=false", "--enable-etcd-recovery"})).To(Succeed())
	var out strings.Builder
	warn(&out, flags)
	g.Expect(out.String()).To(Equal("Warning: --enable-conversion-webhook has no effect\nWarning: --enable-etcd-recovery has no effect\n"))
}
