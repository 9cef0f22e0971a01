package manifest

import (
	"context"
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/support/testenv"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {disk: ssd}
      containers:
      - name: web
        image: web:1
        ports: [{containerPort: 80}]
        env: [{name: A, value: "1"}]
        resources: {requests: {cpu: 1000m, memory: 1024Mi}}
      volumes: [{name: tmp, emptyDir: {}}]
`

func load(t testing.TB, text string) *appsv1.Deployment {
	t.Helper()
	obj, err := LoadAs[*appsv1.Deployment](scheme.Scheme, fstest.MapFS{"d.yaml": {Data: []byte(text)}}, "d.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestLoad(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"has a field that its kind has not", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {}\n", "unknown field"},
		{"is of an unknown kind", "apiVersion: v1\nkind: Nothing\n", "no kind"},
		{"is of another kind than expected", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "it is a *v1.ConfigMap"},
		{"is not there", "", "file does not exist"},
	}
	for _, tc := range cases {
		t.Run("When a manifest "+tc.name+" it should be an error that names it", func(t *testing.T) {
			g := NewWithT(t)
			files := fstest.MapFS{}
			if tc.text != "" {
				files["d.yaml"] = &fstest.MapFile{Data: []byte(tc.text)}
			}
			_, err := LoadAs[*appsv1.Deployment](scheme.Scheme, files, "d.yaml")
			g.Expect(err).To(MatchError(ContainSubstring(tc.want)))
			g.Expect(err).To(MatchError(ContainSubstring("d.yaml")))
		})
	}
}

func TestApply(t *testing.T) {
	direct, err := client.NewWithWatch(testenv.Start(t), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	applied := 0
	c := interceptor.NewClient(direct, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			applied++
			return c.Apply(ctx, obj, opts...)
		},
	})
	apply := func(g Gomega, obj client.Object) bool {
		wrote, err := Apply(t.Context(), c, "test", obj)
		g.Expect(err).NotTo(HaveOccurred())
		return wrote
	}
	live := func(g Gomega) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		g.Expect(direct.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, d)).To(Succeed())
		return d
	}

	t.Run("When an object is not there it should be made, and be returned as the server has it", func(t *testing.T) {
		g := NewWithT(t)
		d := load(t, deployment)
		g.Expect(apply(g, d)).To(BeTrue())
		g.Expect(d.UID).NotTo(BeEmpty())
		g.Expect(d.Spec.Template.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyAlways))
	})

	t.Run("When an object is as wanted it should not be written, whatever the server has filled in", func(t *testing.T) {
		g := NewWithT(t)
		before := applied
		d := load(t, deployment)
		g.Expect(apply(g, d)).To(BeFalse())
		g.Expect(applied).To(Equal(before))
		g.Expect(d.UID).NotTo(BeEmpty())
	})

	t.Run("When somebody adds what the manifest does not speak of it should stay", func(t *testing.T) {
		g := NewWithT(t)
		d := live(g)
		d.Labels = map[string]string{"team": "x"}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "s"})
		g.Expect(direct.Update(t.Context(), d)).To(Succeed())
		g.Expect(apply(g, load(t, deployment))).To(BeFalse())
		g.Expect(live(g).Spec.Template.Spec.Containers).To(HaveLen(2))
	})

	t.Run("When somebody changes what the manifest says it should be put right", func(t *testing.T) {
		g := NewWithT(t)
		d := live(g)
		d.Spec.Template.Spec.Containers[0].Image = "other"
		g.Expect(direct.Update(t.Context(), d)).To(Succeed())
		g.Expect(apply(g, load(t, deployment))).To(BeTrue())
		g.Expect(live(g).Spec.Template.Spec.Containers[0].Image).To(Equal("web:1"))
	})

	t.Run("When a field leaves the manifest it should leave the object", func(t *testing.T) {
		g := NewWithT(t)
		d := load(t, deployment)
		d.Spec.Template.Spec.NodeSelector = nil
		d.Spec.Template.Spec.Containers[0].Env = nil
		g.Expect(apply(g, d)).To(BeTrue())
		g.Expect(live(g).Spec.Template.Spec.NodeSelector).To(BeEmpty())
		g.Expect(live(g).Spec.Template.Spec.Containers[0].Env).To(BeEmpty())
		g.Expect(live(g).Labels).To(HaveKeyWithValue("team", "x"))
	})

	t.Run("When the server refuses an object the error should name it", func(t *testing.T) {
		g := NewWithT(t)
		bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "missing", Name: "cm"}}
		_, err := Apply(t.Context(), c, "test", bad)
		g.Expect(err).To(MatchError(ContainSubstring("applying ConfigMap missing/cm")))
	})

	t.Run("When asked whether an object came from a manifest it should go by its content", func(t *testing.T) {
		g := NewWithT(t)
		d := load(t, deployment)
		g.Expect(apply(g, d.DeepCopy())).To(BeTrue())
		same, err := AppliedFrom(scheme.Scheme, live(g), d.DeepCopy())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(same).To(BeTrue())
		d.Spec.Template.Spec.Containers[0].Image = "web:2"
		same, err = AppliedFrom(scheme.Scheme, live(g), d)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(same).To(BeFalse())
	})
}
