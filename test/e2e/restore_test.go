// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	infrav1 "github.com/openshift/hypershift/api/infrastructure/v1beta1"
	"github.com/openshift/hypershift/support/namespaceguard"
	"github.com/openshift/hypershift/test/journey"
)

// restore deletes everything of the cluster in the management cluster, including etcd's volume, and restores it from a
// backup in the object store. The machines run all the time, and only the control plane is affected.
func (s *suite) restore(t *testing.T) {
	g := NewWithT(t)
	s.createCluster(t, 2)
	s.must(t, s.RunWorkload(t.Context(), s.cluster))
	guest, err := s.GuestClient(s.cluster)
	s.must(t, err)
	note := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	before := s.settled(t, guest)
	s.must(t, guest.Create(t.Context(), note("before-the-backup")))
	keyFile, url, err := s.BackUp(t.Context(), s.c, s.cluster)
	s.must(t, err)
	s.must(t, guest.Create(t.Context(), note("after-the-backup")))
	calls := s.changes(t)

	var kept []client.Object
	s.alone(func() { kept = s.lose(t) })
	for _, obj := range kept {
		s.must(t, s.c.Create(t.Context(), obj))
	}
	name, value := s.StoreVariable()
	s.Env = []string{name + "=" + value}
	s.must(t, s.Restore(t.Context(), keyFile, url))
	s.must(t, s.SaveKubeconfig(t.Context(), s.cluster))
	s.reach(t, "all machines taken over", soon, s.takenOver())
	s.reach(t, "restored nodes ready", soon, s.NodesReady(s.cluster, 2))
	s.reach(t, "pool whole", soon, journey.PoolReplicas(s.c, s.cluster, 2))

	guest, err = s.GuestClient(s.cluster)
	s.must(t, err)
	g.Expect(s.settled(t, guest)).To(Equal(before), "nothing was restarted, installed or made anew")
	g.Expect(guest.Get(t.Context(), client.ObjectKeyFromObject(note("before-the-backup")), &corev1.ConfigMap{})).To(Succeed())
	g.Expect(apierrors.IsNotFound(guest.Get(t.Context(), client.ObjectKeyFromObject(note("after-the-backup")), &corev1.ConfigMap{}))).To(BeTrue())
	for operation, count := range s.changes(t) {
		if _, verb, _ := strings.Cut(operation, "."); slices.Contains([]string{"allocate", "deploy", "release"}, verb) {
			g.Expect(count).To(Equal(calls[operation]), operation)
		}
	}
	s.alone(func() {
		s.reach(t, "management cluster and restored cluster at rest", long, journey.All(
			s.Quiet(s.Path("kubeconfig"), 20*time.Second), s.Quiet(s.Path(s.cluster+".kubeconfig"), 20*time.Second)))
	})
	s.must(t, s.RunWorkload(t.Context(), s.cluster))
	s.destroy(t)
}

// settled waits until a cluster has two machines, two Nodes and two pods, and returns their identities.
func (s *suite) settled(t *testing.T, guest client.Client) (found map[string]string) {
	t.Helper()
	s.reach(t, "two each of machines, Nodes and pods", soon, func(ctx context.Context) (_ bool, _ string, err error) {
		found, err = journey.Running(ctx, s.maas, guest, s.user)
		return len(found) == 6, strings.Join(slices.Sorted(maps.Keys(found)), ", "), err
	})
	return found
}

// lose removes the management side of the cluster without any cleanup, as a disaster would. It returns the objects
// that a user has in a repository, ready to be created again. These are Secrets, ConfigMaps, pools, and the
// HostedCluster with the ports that nodes use.
func (s *suite) lose(t *testing.T) []client.Object {
	t.Helper()
	kept := s.repository(t)
	s.must(t, s.Type(t.Context(), "kubectl", "scale", "-n", journey.OperatorNamespace, "deployment/operator", "--replicas=0"))
	s.must(t, s.Type(t.Context(), "kubectl", "wait", "-n", journey.OperatorNamespace, "--for=delete", "pod", "-l", "app=operator", "--timeout=5m"))
	hosted := journey.HostedNamespace(s.cluster)
	s.must(t, s.Type(t.Context(), "kubectl", "annotate", "namespace", hosted, namespaceguard.ReleasedAnnotation+"=by-hand"))
	// Deployments of the managers have a finalizer, and their ReplicaSets would otherwise start new pods.
	s.must(t, s.Type(t.Context(), "kubectl", "delete", "deployments,statefulsets,replicasets", "-n", hosted, "--all", "--wait=false"))
	s.burn(t, hosted)
	s.must(t, s.Type(t.Context(), "kubectl", "delete", "namespace", hosted, "--wait=false"))
	gone := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hosted}}
	// Each check runs one or two commands for each object, which takes a minute on a busy machine.
	s.reach(t, "hosted namespace and etcd's volume gone", long, func(ctx context.Context) (bool, string, error) {
		for _, namespace := range []string{hosted, journey.Namespace} {
			if err := s.force(ctx, namespace); err != nil {
				return false, "", err
			}
		}
		return journey.Gone(s.c, gone)(ctx)
	})
	s.must(t, s.Type(t.Context(), "kubectl", "scale", "-n", journey.OperatorNamespace, "deployment/operator", "--replicas=1"))
	s.reach(t, "operator back", soon, journey.OperatorReady(s.c))
	return kept
}

// burn kills the processes of a namespace's pods before anything else is deleted, so that no controller drains nodes or
// releases machines.
func (s *suite) burn(t *testing.T, namespace string) {
	t.Helper()
	pods := &corev1.PodList{}
	s.must(t, s.c.List(t.Context(), pods, client.InNamespace(namespace)))
	s.must(t, s.Type(t.Context(), "kubectl", "delete", "pods", "-n", namespace, "--all", "--grace-period=0", "--force", "--wait=false"))
	s.reach(t, "processes of the control plane dead", soon, journey.Quick(func() (bool, string, error) {
		killed, err := s.killIf(func(pid int) bool { return isOf(pid, pods.Items) })
		return killed == 0, fmt.Sprintf("%d were there", killed), err
	}))
}

// force deletes the cluster's objects in a namespace despite finalizers, without the cleanup that these protect.
func (s *suite) force(ctx context.Context, namespace string) error {
	all, err := s.Read(ctx, "kubectl", "api-resources", "--namespaced", "--verbs=list", "-o", "name")
	if err != nil {
		return err
	}
	kinds := slices.DeleteFunc(strings.Fields(all), func(kind string) bool {
		// Deployments of the managers also have a finalizer.
		return kind != "deployments.apps" && !strings.HasSuffix(kind, hyperv1.GroupVersion.Group) && !strings.HasSuffix(kind, "cluster.x-k8s.io")
	})
	names, err := s.Read(ctx, "kubectl", "get", strings.Join(kinds, ","), "-n", namespace, "-o", "name")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(names) {
		if !strings.Contains(namespace+"/"+name, s.cluster) {
			continue // The object belongs to another scenario's cluster.
		}
		// The object may disappear concurrently, and the next check finds what is left.
		_, _ = s.Read(ctx, "kubectl", "delete", name, "-n", namespace, "--wait=false")
		_, _ = s.Read(ctx, "kubectl", "patch", name, "-n", namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	}
	return nil
}

// repository returns the objects of the cluster that a user stores elsewhere or can write again. It excludes derived
// objects and fields that operators added.
func (s *suite) repository(t *testing.T) []client.Object {
	t.Helper()
	hc, pools := &hyperv1.HostedCluster{}, &hyperv1.NodePoolList{}
	s.must(t, s.c.Get(t.Context(), client.ObjectKey{Namespace: journey.Namespace, Name: s.cluster}, hc))
	kept := []client.Object{&hyperv1.HostedCluster{ObjectMeta: applied(hc), Spec: hc.Spec}}
	kept[0].SetAnnotations(map[string]string{hyperv1.RestoringAnnotation: "true"})
	for i := range hc.Spec.Services {
		if node := hc.Spec.Services[i].ServicePublishingStrategy.NodePort; node != nil {
			node.Port = s.port(t, hc.Spec.Services[i].Service)
		}
	}
	s.must(t, s.c.List(t.Context(), pools, client.InNamespace(journey.Namespace)))
	for _, pool := range pools.Items {
		if pool.Spec.ClusterName != s.cluster {
			continue
		}
		kept = append(kept, &hyperv1.NodePool{ObjectMeta: applied(&pool), Spec: pool.Spec})
	}
	for _, name := range []string{"-pull-secret", "-maas-credentials", "-etcd-encryption-key"} {
		secret := &corev1.Secret{}
		s.must(t, s.c.Get(t.Context(), client.ObjectKey{Namespace: journey.Namespace, Name: s.cluster + name}, secret))
		kept = append(kept, &corev1.Secret{ObjectMeta: applied(secret), Type: secret.Type, Data: secret.Data})
	}
	return kept
}

// applied returns the part of an object's metadata that a user writes.
func applied(obj client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), Labels: obj.GetLabels()}
}

// port returns the port on which a service of the control plane is published; zero if it is not.
func (s *suite) port(t *testing.T, service hyperv1.ServiceType) int32 {
	t.Helper()
	name, ok := map[hyperv1.ServiceType]string{hyperv1.APIServer: "kube-apiserver", hyperv1.Ignition: "ignition-server"}[service]
	if !ok {
		return 0
	}
	published := &corev1.Service{}
	s.must(t, s.c.Get(t.Context(), client.ObjectKey{Namespace: journey.HostedNamespace(s.cluster), Name: name}, published))
	return published.Spec.Ports[0].NodePort
}

// takenOver checks that the machines that ran belong to Machines again.
func (s *suite) takenOver() journey.Check {
	deployed := journey.MachinesDeployed(s.c, s.cluster, s.cluster, 2)
	return func(ctx context.Context) (bool, string, error) {
		infra := &infrav1.MaasCluster{}
		if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.HostedNamespace(s.cluster), Name: s.cluster},
			infra); err != nil {
			return false, "", err
		}
		restored := meta.FindStatusCondition(infra.Status.Conditions, "MachinesRestored")
		if restored == nil || restored.Status != metav1.ConditionTrue {
			return false, fmt.Sprint(restored), nil
		}
		return deployed(ctx)
	}
}
