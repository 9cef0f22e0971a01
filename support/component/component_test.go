// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

const namespace = "clusters-demo"

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(hyperv1.AddToScheme(scheme))
	return scheme
}

// known is a scheme for tests that do not change it.
var known = newScheme()

type payload map[string]string

func (p payload) ComponentImage(tag string) (string, bool) {
	image, ok := p[tag]
	return image, ok
}

func newScope(objects ...client.Object) *Scope {
	hcp := &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo", UID: "1", Generation: 3},
		Spec: hyperv1.HostedControlPlaneSpec{
			ReleaseImage: "release", ControllerAvailabilityPolicy: hyperv1.SingleReplica,
			Etcd: hyperv1.EtcdSpec{ManagementType: hyperv1.Managed},
		},
	}
	c := fake.NewClientBuilder().WithScheme(known).WithObjects(append(objects, hcp)...).
		WithStatusSubresource(&hyperv1.ControlPlaneComponent{}, &appsv1.Deployment{}, &batchv1.Job{}).WithReturnManagedFields().Build()
	return &Scope{Client: c, HCP: hcp, Version: "1.36.3", Images: payload{"web": "registry/web:1", "availability-prober": "registry/op:latest"}}
}

func manifests(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

const (
	deploymentYAML = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, volumeMounts: [{name: config, mountPath: /config}]}]
      volumes:
      - {name: config, configMap: {name: web-config}}
      - {name: keys, secret: {secretName: web-keys}}
`
	configYAML      = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-config}\ndata: {a: b}\n"
	accountYAML     = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\n"
	pdbYAML         = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"
	roleBindingYAML = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web}]
`
	jobYAML = `
apiVersion: batch/v1
kind: Job
metadata: {name: web}
spec:
  template:
    spec:
      restartPolicy: OnFailure
      containers: [{name: web, image: web}]
`
)

// web returns a component without dependencies.
func web(edit ...func(*Component)) *Component {
	c := &Component{
		Name: "etcd-web",
		Manifests: manifests(map[string]string{
			"deployment.yaml": deploymentYAML, "config.yaml": configYAML, "account.yaml": accountYAML, "rolebinding.yaml": roleBindingYAML,
		}),
	}
	for _, f := range edit {
		f(c)
	}
	return c
}

func get[T client.Object](t testing.TB, s *Scope, name string, obj T) T {
	t.Helper()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func gone(t testing.TB, s *Scope, name string, obj client.Object) bool {
	t.Helper()
	return apierrors.IsNotFound(s.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj))
}

// reported returns a condition of the ControlPlaneComponent as status/reason.
func reported(t testing.TB, s *Scope, c *Component, conditionType string) string {
	t.Helper()
	cpc := get(t, s, c.Name, &hyperv1.ControlPlaneComponent{})
	found := meta.FindStatusCondition(cpc.Status.Conditions, conditionType)
	if found == nil {
		return "absent"
	}
	return string(found.Status) + "/" + found.Reason
}

// finish sets all pods of the Deployment to ready.
func finish(t testing.TB, s *Scope) {
	t.Helper()
	d := get(t, s, "web", &appsv1.Deployment{})
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
	}
	if err := s.Client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func TestReconcile(t *testing.T) {
	t.Run("When a component is new, it should be applied, owned by the HostedControlPlane, and rolling out", func(t *testing.T) {
		g := NewWithT(t)
		s, c := newScope(), web()
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		d := get(t, s, "web", &appsv1.Deployment{})
		g.Expect(metav1.IsControlledBy(d, s.HCP)).To(BeTrue())
		g.Expect(get(t, s, "web", &corev1.ServiceAccount{}).ImagePullSecrets).To(ConsistOf(HaveField("Name", "pull-secret")))
		g.Expect(get(t, s, "web", &rbacv1.RoleBinding{}).Subjects[0].Namespace).To(Equal(namespace))
		g.Expect(reported(t, s, c, "Available")).To(Equal("False/WaitingForAvailable"))
		g.Expect(reported(t, s, c, "RolloutComplete")).To(Equal("False/WaitingForRolloutComplete"))
		g.Expect(get(t, s, c.Name, &hyperv1.ControlPlaneComponent{}).Status.Version).To(BeEmpty())
	})

	t.Run("When its Pods are ready, it should report its version and objects", func(t *testing.T) {
		g := NewWithT(t)
		s, c := newScope(), web()
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		finish(t, s)
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		cpc := get(t, s, c.Name, &hyperv1.ControlPlaneComponent{})
		g.Expect(Done(cpc, "1.36.3", 3)).To(BeTrue())
		g.Expect(Done(cpc, "1.36.4", 3)).To(BeFalse())
		g.Expect(Done(cpc, "1.36.3", 4)).To(BeFalse(), "what was said of an older spec")
		g.Expect(cpc.Status.ObservedGeneration).To(Equal(int64(3)))
		g.Expect(cpc.Status.Resources).To(ContainElement(hyperv1.ComponentResource{Group: "apps", Kind: "Deployment", Name: "web"}))
		g.Expect(cpc.Status.Resources).To(HaveLen(4))
	})

	t.Run("When a mounted object changes, it should roll its Pods", func(t *testing.T) {
		g := NewWithT(t)
		s, c := newScope(), web()
		hash := func() string {
			g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
			return get(t, s, "web", &appsv1.Deployment{}).Spec.Template.Annotations[configHashAnnotation]
		}
		first := hash()
		g.Expect(hash()).To(Equal(first))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-keys"}, Data: map[string][]byte{"k": []byte("1")}}
		g.Expect(s.Client.Create(t.Context(), secret)).To(Succeed())
		second := hash()
		g.Expect(second).NotTo(Equal(first))
		secret.Data["k"] = []byte("2")
		g.Expect(s.Client.Update(t.Context(), secret)).To(Succeed())
		g.Expect(hash()).NotTo(Equal(second))
	})

	t.Run("When a dependency is not complete, it should apply nothing and name the dependency", func(t *testing.T) {
		g := NewWithT(t)
		s, c := newScope(), web(func(c *Component) { c.Name = "web"; c.Dependencies = []string{"etcd"} })
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, "web", &appsv1.Deployment{})).To(BeTrue())
		g.Expect(gone(t, s, "web-config", &corev1.ConfigMap{})).To(BeTrue())
		cpc := get(t, s, "web", &hyperv1.ControlPlaneComponent{})
		rollout := meta.FindStatusCondition(cpc.Status.Conditions, "RolloutComplete")
		g.Expect(rollout.Reason).To(Equal("WaitingForDependencies"))
		g.Expect(rollout.Message).To(Equal("Waiting for etcd, kube-apiserver"))
		g.Expect(cpc.Status.Conditions).To(HaveLen(2))
	})

	t.Run("When a dependency is not complete any more, it should keep its workload and stay Available", func(t *testing.T) {
		g := NewWithT(t)
		s, c := newScope(), web()
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		finish(t, s)
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		c.Dependencies = []string{"etcd"}
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, "web", &appsv1.Deployment{})).To(BeFalse())
		g.Expect(reported(t, s, c, "Available")).To(Equal("True/AsExpected"))
		g.Expect(reported(t, s, c, "RolloutComplete")).To(Equal("False/WaitingForDependencies"))
	})

	t.Run("When a component is disabled, it should delete the objects that it created and no others", func(t *testing.T) {
		g := NewWithT(t)
		foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		s := newScope(foreign)
		c := web(func(c *Component) {
			c.Manifests = manifests(map[string]string{"deployment.yaml": deploymentYAML, "config.yaml": configYAML})
		})
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		c.Manifests = manifests(map[string]string{"deployment.yaml": deploymentYAML, "config.yaml": configYAML, "account.yaml": accountYAML})
		c.Enabled = func(context.Context, *Scope) (bool, error) { return false, nil }
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, "web", &appsv1.Deployment{})).To(BeTrue())
		g.Expect(gone(t, s, "web-config", &corev1.ConfigMap{})).To(BeTrue())
		g.Expect(gone(t, s, c.Name, &hyperv1.ControlPlaneComponent{})).To(BeTrue())
		g.Expect(gone(t, s, "web", &corev1.ServiceAccount{})).To(BeFalse())
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed(), "again")
	})

	t.Run("When Enabled returns an error, it should return that error and leave the component unchanged", func(t *testing.T) {
		g := NewWithT(t)
		c := web(func(c *Component) {
			c.Enabled = func(context.Context, *Scope) (bool, error) { return false, errors.New("registry is down") }
		})
		g.Expect(c.Reconcile(t.Context(), newScope())).To(MatchError(ContainSubstring("registry is down")))
	})

	t.Run("When the payload lacks an image, it should name it in the error and set RolloutComplete to False", func(t *testing.T) {
		g := NewWithT(t)
		s, c := newScope(), web()
		s.Images = payload{}
		err := c.Reconcile(t.Context(), s)
		var missing *MissingImagesError
		g.Expect(errors.As(err, &missing)).To(BeTrue())
		g.Expect(missing.Tags).To(Equal([]string{"web"}))
		g.Expect(reported(t, s, c, "RolloutComplete")).To(Equal("False/" + ReasonError))
	})

	t.Run("When an adapter fails, it should name the file and not apply the workload", func(t *testing.T) {
		g := NewWithT(t)
		s := newScope()
		c := web(func(c *Component) {
			c.Adapters = map[string]Adapter{"config.yaml": Adapt(func(context.Context, *Scope, *corev1.ConfigMap) error { return errors.New("no key") })}
		})
		g.Expect(c.Reconcile(t.Context(), s)).To(MatchError(ContainSubstring("adapting config.yaml of component etcd-web: no key")))
		g.Expect(gone(t, s, "web", &appsv1.Deployment{})).To(BeTrue())
	})

	t.Run("When an adapter is for another kind, it should return an error", func(t *testing.T) {
		c := web(func(c *Component) {
			c.Adapters = map[string]Adapter{"config.yaml": Adapt(func(context.Context, *Scope, *corev1.Secret) error { return nil })}
		})
		NewWithT(t).Expect(c.Reconcile(t.Context(), newScope())).To(MatchError(ContainSubstring("is a *v1.ConfigMap, not a *v1.Secret")))
	})

	t.Run("When a manifest is enabled or disabled, it should apply or delete its object", func(t *testing.T) {
		g := NewWithT(t)
		s, wanted := newScope(), false
		c := web(func(c *Component) {
			c.Adapters = map[string]Adapter{"account.yaml": When(func(*Scope) bool { return wanted })}
		})
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, "web", &corev1.ServiceAccount{})).To(BeTrue())
		wanted = true
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, "web", &corev1.ServiceAccount{})).To(BeFalse())
		wanted = false
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, "web", &corev1.ServiceAccount{})).To(BeTrue())
	})

	t.Run("When the manifest of a Job changes, it should replace the Job, because its Pod template is immutable", func(t *testing.T) {
		g := NewWithT(t)
		s := newScope()
		c := web(func(c *Component) { c.Manifests = manifests(map[string]string{"job.yaml": jobYAML}) })
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		first := get(t, s, "web", &batchv1.Job{})
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(get(t, s, "web", &batchv1.Job{}).ResourceVersion).To(Equal(first.ResourceVersion))
		g.Expect(reported(t, s, c, "Available")).To(Equal("False/JobActive"))
		s.Images = payload{"web": "registry/web:2"}
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, "web", &batchv1.Job{})).To(BeTrue())
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(get(t, s, "web", &batchv1.Job{}).Spec.Template.Spec.Containers[0].Image).To(Equal("registry/web:2"))
	})
}

func TestFiles(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		want  string
	}{
		"no workload":   {map[string]string{"config.yaml": configYAML}, "has none of deployment.yaml"},
		"two workloads": {map[string]string{"deployment.yaml": deploymentYAML, "job.yaml": jobYAML}, "has two workloads"},
	}
	for name, tc := range cases {
		t.Run("When a folder has "+name+", it should return an error", func(t *testing.T) {
			c := web(func(c *Component) { c.Manifests = manifests(tc.files) })
			NewWithT(t).Expect(c.Reconcile(t.Context(), newScope())).To(MatchError(ContainSubstring(tc.want)))
		})
	}
}

func TestDependencies(t *testing.T) {
	unmanaged := func(hcp *hyperv1.HostedControlPlane) { hcp.Spec.Etcd.ManagementType = hyperv1.Unmanaged }
	cases := []struct {
		name, component string
		declared, want  []string
		edit            func(*hyperv1.HostedControlPlane)
	}{
		{name: "an ordinary component", component: "kube-scheduler", want: []string{"kube-apiserver"}},
		{name: "a component that also declares the API server", component: "x", declared: []string{"kube-apiserver"}, want: []string{"kube-apiserver"}},
		{name: "the API server", component: "kube-apiserver", declared: []string{"etcd"}, want: []string{"etcd"}},
		{name: "the API server with an unmanaged etcd", component: "kube-apiserver", declared: []string{"etcd"}, edit: unmanaged},
		{name: "a component of etcd", component: "etcd-events"},
		{name: "the ignition-server", component: "ignition-server"},
	}
	for _, tc := range cases {
		t.Run("When it is "+tc.name+", it should wait only for its dependencies", func(t *testing.T) {
			hcp := newScope().HCP
			if tc.edit != nil {
				tc.edit(hcp)
			}
			got := (&Component{Name: tc.component, Dependencies: tc.declared}).dependencies(hcp)
			NewWithT(t).Expect(got).To(HaveExactElements(anys(tc.want)...))
		})
	}
}

func anys(texts []string) []any {
	var all []any
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}
