// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/testenv"
)

var errAway = errors.New("the API server is away")

// outage fails one call, by its number counted from zero. The call fails before it has an effect. With after set, only
// writes are counted, and the write succeeds but its answer is lost.
type outage struct {
	number, calls int
	after         bool
}

func (o *outage) strikes(r testenv.Request) error {
	if o.after && !r.Writes() {
		return r.Do()
	}
	o.calls++
	if o.calls-1 != o.number {
		return r.Do()
	}
	if o.after {
		_ = r.Do()
	}
	return errAway
}

// through returns a client whose calls are subject to the outage.
func (o *outage) through(c client.Client) client.Client {
	return testenv.Intercept(c.(client.WithWatch), o.strikes)
}

// left returns all objects in the management cluster, without the fields that each write changes.
func left(t *testing.T, c client.Client) string {
	t.Helper()
	var all strings.Builder
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &batchv1.JobList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{},
		&rbacv1.RoleBindingList{}, &policyv1.PodDisruptionBudgetList{}, &hyperv1.ControlPlaneComponentList{},
	} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			obj.SetResourceVersion("")
			obj.SetUID("")
			obj.SetManagedFields(nil)
			obj.SetCreationTimestamp(metav1.Time{})
			if report, ok := obj.(*hyperv1.ControlPlaneComponent); ok {
				for i := range report.Status.Conditions {
					report.Status.Conditions[i].LastTransitionTime = metav1.Time{}
				}
			}
			raw, err := yaml.Marshal(obj)
			fmt.Fprintf(&all, "--- %T\n%s", obj, raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// interruption is a scenario of a component: begin prepares it, and a call in each reconcile after that may fail.
type interruption struct {
	name string
	// passes is the number of reconciles without failures.
	passes int
	// replaces reports that the scenario deletes objects, so that the test must cover lost answers too.
	replaces bool
	begin    func(t *testing.T, s *Scope) *Component
}

func interruptions() []interruption {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	before := func(t *testing.T, s *Scope, c *Component) *Component {
		t.Helper()
		must(t, c.Reconcile(t.Context(), s))
		return c
	}
	with := func(files map[string]string) *Component {
		return web(func(c *Component) { c.Manifests = manifests(files) })
	}
	return []interruption{
		{"a component is new", 1, false, func(*testing.T, *Scope) *Component {
			c := with(map[string]string{"deployment.yaml": deploymentYAML, "role.yaml": roleYAML, "pdb.yaml": pdbYAML})
			c.Adapters = map[string]Adapter{"pdb.yaml": DisruptionBudget()}
			return c
		}},
		{"a component waits for another", 1, false, func(*testing.T, *Scope) *Component {
			return web(func(c *Component) { c.Dependencies = []string{"etcd"} })
		}},
		{"a manifest is disabled", 1, false, func(t *testing.T, s *Scope) *Component {
			c := before(t, s, with(map[string]string{"deployment.yaml": deploymentYAML, "account.yaml": accountYAML}))
			c.Adapters = map[string]Adapter{"account.yaml": When(func(*Scope) bool { return false })}
			return c
		}},
		{"a Job is replaced", 2, true, func(t *testing.T, s *Scope) *Component {
			c := before(t, s, with(map[string]string{"job.yaml": jobYAML}))
			s.Images = payload{"web": "registry/web:2"}
			return c
		}},
		{"a StatefulSet is replaced", 2, true, func(t *testing.T, s *Scope) *Component {
			before(t, s, with(map[string]string{"statefulset.yaml": setYAML("8Gi")}))
			return with(map[string]string{"statefulset.yaml": setYAML("16Gi")})
		}},
		{"a user deleted a held Deployment", 2, true, func(t *testing.T, s *Scope) *Component {
			c := with(map[string]string{"deployment.yaml": strings.Replace(deploymentYAML, "{name: web}", "{name: etcd-web}", 1)})
			c.Held = true
			before(t, s, c)
			must(t, s.Client.Delete(t.Context(), get(t, s, c.Name, &appsv1.Deployment{})))
			return c
		}},
		{"a component is disabled", 1, true, func(t *testing.T, s *Scope) *Component {
			c := before(t, s, with(map[string]string{"deployment.yaml": deploymentYAML, "role.yaml": roleYAML, "config.yaml": configYAML}))
			c.Enabled = func(context.Context, *Scope) (bool, error) { return false, nil }
			return c
		}},
	}
}

// few returns a scheme with only the kinds in interruptions: the fake API server searches all its objects at each
// write.
func few() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, hyperv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// TestInterrupted checks that the reconcile returns an error, whichever call fails, and that the next reconciles reach
// the same state as without the failure.
func TestInterrupted(t *testing.T) {
	scheme, scope := few(), newScope()
	for _, way := range interruptions() {
		t.Run("When "+way.name+" and a call fails, it should return the error and recover on the next reconcile", func(t *testing.T) {
			passes := func(g Gomega, after bool, number int) (string, bool) {
				s := &Scope{HCP: scope.HCP.DeepCopy(), Version: scope.Version, Images: scope.Images}
				s.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.HCP).WithStatusSubresource(&hyperv1.ControlPlaneComponent{}).Build()
				c, cluster := way.begin(t, s), s.Client
				o := &outage{number: number, after: after}
				s.Client = o.through(cluster)
				for range way.passes {
					struck := o.calls > number
					err := c.Reconcile(t.Context(), s)
					if !struck && o.calls > number {
						g.Expect(err).To(MatchError(errAway), "call %d", number)
					} else {
						g.Expect(err).NotTo(HaveOccurred(), "call %d", number)
					}
				}
				s.Client = cluster
				for range way.passes {
					g.Expect(c.Reconcile(t.Context(), s)).To(Succeed())
				}
				return left(t, cluster), o.calls > number
			}
			g := NewWithT(t)
			want, _ := passes(g, false, 1000)
			for _, after := range []bool{false, true} {
				reached := way.replaces || !after
				for number := 0; reached; number++ {
					var got string
					if got, reached = passes(g, after, number); got != want {
						t.Fatalf("call %d failed (after it was done: %t), and never came to where it should (-want +got):\n%s", number, after, cmp.Diff(want, got))
					}
					if number > 200 {
						t.Fatal("it calls for ever")
					}
				}
			}
		})
	}
}
