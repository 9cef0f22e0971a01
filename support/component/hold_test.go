// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

func TestHeld(t *testing.T) {
	held := web(func(c *Component) { c.Name, c.Held = "cluster-api", true })
	held.Manifests = manifests(map[string]string{"deployment.yaml": strings.ReplaceAll(deploymentYAML, "metadata: {name: web}", "metadata: {name: cluster-api}")})
	key := client.ObjectKey{Namespace: namespace, Name: held.Name}

	t.Run("When a user deletes the Deployment, it should remove its finalizer and create it again", func(t *testing.T) {
		g, s := NewWithT(t), newScope()
		g.Expect(held.Reconcile(t.Context(), s)).To(Succeed())
		live := get(t, s, held.Name, &appsv1.Deployment{})
		g.Expect(live.Finalizers).To(ConsistOf(hyperv1.ControlPlaneComponentFinalizer))
		g.Expect(s.Client.Delete(t.Context(), live)).To(Succeed())
		g.Expect(held.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, held.Name, live)).To(BeTrue())
		g.Expect(held.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(get(t, s, held.Name, &appsv1.Deployment{}).Finalizers).To(ConsistOf(hyperv1.ControlPlaneComponentFinalizer))
	})
	t.Run("When a Deployment is released, it should have no finalizer, and a missing one should not be an error", func(t *testing.T) {
		g, s := NewWithT(t), newScope()
		g.Expect(Release(t.Context(), s.Client, key)).To(Succeed())
		g.Expect(held.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(Release(t.Context(), s.Client, key)).To(Succeed())
		g.Expect(get(t, s, held.Name, &appsv1.Deployment{}).Finalizers).To(BeEmpty())
	})
}

const roleYAML = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: etcd-web}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`

func TestAccess(t *testing.T) {
	t.Run("When a component has a Role, it should get a bound ServiceAccount, and both are deleted with it", func(t *testing.T) {
		g, s := NewWithT(t), newScope()
		c := web(func(c *Component) {
			c.Manifests = manifests(map[string]string{"deployment.yaml": deploymentYAML, "role.yaml": roleYAML})
		})
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(get(t, s, c.Name, &corev1.ServiceAccount{}).ImagePullSecrets).To(ConsistOf(HaveField("Name", "pull-secret")))
		binding := get(t, s, c.Name, &rbacv1.RoleBinding{})
		g.Expect(binding.RoleRef.Name).To(Equal(c.Name))
		g.Expect(binding.Subjects).To(ConsistOf(rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: c.Name}))
		g.Expect(get(t, s, c.Name, &hyperv1.ControlPlaneComponent{}).Status.Resources).To(HaveLen(4))
		g.Expect(c.remove(t.Context(), s)).To(Succeed())
		g.Expect(gone(t, s, c.Name, binding)).To(BeTrue())
		g.Expect(gone(t, s, c.Name, &corev1.ServiceAccount{})).To(BeTrue())
	})
}

func TestHeldAccess(t *testing.T) {
	t.Run("When the control plane is deleted before its machines, its ServiceAccount and Role should remain", func(t *testing.T) {
		g, s := NewWithT(t), newScope()
		c := web(func(c *Component) {
			c.Held = true
			c.Manifests = manifests(map[string]string{"deployment.yaml": deploymentYAML, "role.yaml": roleYAML})
		})
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		for _, obj := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
			g.Expect(get(t, s, c.Name, obj).GetOwnerReferences()).To(BeEmpty(), "%T would be collected with the control plane", obj)
		}
		g.Expect(get(t, s, "web", &appsv1.Deployment{}).OwnerReferences).To(HaveLen(1))
	})
}

func TestAccessOrder(t *testing.T) {
	t.Run("When a component has a Role, it should create the Role before the RoleBinding, as RBAC requires", func(t *testing.T) {
		g, s := NewWithT(t), newScope()
		var applied []string
		s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				applied = append(applied, obj.(interface{ GetKind() string }).GetKind())
				return c.Apply(ctx, obj, opts...)
			},
		})
		c := web(func(c *Component) {
			c.Manifests = manifests(map[string]string{"deployment.yaml": deploymentYAML, "role.yaml": roleYAML})
		})
		g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
		g.Expect(applied).To(ContainElements("Role", "RoleBinding"))
		g.Expect(slices.Index(applied, "RoleBinding")).To(BeNumerically(">", slices.Index(applied, "Role")), "%v", applied)
	})
}

func TestOperator(t *testing.T) {
	t.Run("When another operator rolls out a component, it should set that operator's label and field manager", func(t *testing.T) {
		g, s := NewWithT(t), newScope()
		s.Operator = "some-operator"
		g.Expect(web().Reconcile(t.Context(), s)).To(Succeed())
		live := get(t, s, "web", &appsv1.Deployment{})
		g.Expect(live.Labels).To(HaveKeyWithValue("hypershift.openshift.io/managed-by", "some-operator"))
		g.Expect(live.ManagedFields).To(ContainElement(HaveField("Manager", "some-operator")))
	})
	t.Run("When a component sets an image, it should override the payload's image", func(t *testing.T) {
		g := NewWithT(t)
		c := web(func(c *Component) { c.Images = map[string]string{"web": "own:1"} })
		obj, err := c.Render(t.Context(), newScope())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(obj.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image).To(Equal("own:1"))
	})
}
