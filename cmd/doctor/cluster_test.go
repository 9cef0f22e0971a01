// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift/hypershift/cmd/doctor"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/support/crds"
)

// installed returns the CRDs of this product and of Cluster API, as their folders have them.
func installed(t *testing.T) []client.Object {
	t.Helper()
	var all []client.Object
	for _, folder := range []string{crds.HyperShift, crds.ClusterAPI} {
		definitions, err := crds.Load(folder)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, crd := range definitions {
			all = append(all, crd)
		}
	}
	return all
}

func class(name, isDefault string) client.Object {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": isDefault},
	}}
}

// operatorWith returns an operator and its pod with this state.
func operatorWith(available int32, waiting *corev1.ContainerStateWaiting) []client.Object {
	labels := map[string]string{"name": "operator", "hypershift.openshift.io/operator-component": "operator"}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: "operator", Labels: labels},
			Status: appsv1.DeploymentStatus{AvailableReplicas: available}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "hypershift", Name: "operator-1", Labels: labels},
			Status: corev1.PodStatus{
				ContainerStatuses: []corev1.ContainerStatus{{Name: "operator", State: corev1.ContainerState{Waiting: waiting}}}}},
	}
}

func webhook(policy admissionv1.FailurePolicyType, resource string) client.Object {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "policies"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "pods.policies.example", FailurePolicy: &policy,
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "policies",
				Name: "server"}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
			}},
		}},
	}
}

func TestManagement(t *testing.T) {
	foreign := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "hostedclusters.hypershift.openshift.io"}}
	newer := installed(t)
	for _, crd := range newer {
		crd.SetAnnotations(map[string]string{"hypershift.openshift.io/installed-version": "0.9.0"})
	}
	for name, tt := range map[string]struct {
		version string
		class   string
		objects []client.Object
		check   string
		status  doctor.Status
		says    string
	}{
		"accepts the version of a vendor": {version: "v1.36.3+rke2r1", check: "version", status: doctor.OK,
			says: "1.36.3"},
		"refuses an old version": {version: "v1.30.9", check: "version", status: doctor.Failed,
			says: "too old"},
		"does not require an installation": {check: "crds", status: doctor.Warning, says: "not installed"},
		"accepts its own CRDs": {objects: installed(t), check: "crds", status: doctor.OK,
			says: "is installed"},
		"refuses CRDs of another HyperShift": {objects: []client.Object{foreign}, check: "crds", status: doctor.Failed,
			says: "another HyperShift"},
		"refuses an operator that is much newer": {objects: newer, check: "crds", status: doctor.Failed,
			says: "does not work with version 0.9.0"},
		"requires a default StorageClass": {objects: []client.Object{class("slow", "false")}, check: "storage",
			status: doctor.Failed, says: "there is: slow"},
		"accepts a default StorageClass": {objects: []client.Object{class("slow", "false"), class("fast", "true")},
			check: "storage", status: doctor.OK, says: "fast"},
		"warns about two default StorageClasses": {objects: []client.Object{class("a", "true"), class("b", "true")},
			check: "storage", status: doctor.Warning, says: "a, b"},
		"accepts a named StorageClass": {class: "slow", objects: []client.Object{class("slow", "false")},
			check: "storage", status: doctor.OK, says: "slow"},
		"requires the named StorageClass": {class: "fast", objects: []client.Object{class("slow", "true")},
			check: "storage", status: doctor.Failed, says: `no StorageClass "fast"`},
		"reports that no operator is installed": {check: "operator", status: doctor.Warning, says: "no operator"},
		"accepts an operator that runs": {objects: operatorWith(1, nil), check: "operator", status: doctor.OK,
			says: "hypershift/operator runs"},
		"says why the operator does not run": {objects: operatorWith(0,
			&corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such tag"}),
			check: "operator", status: doctor.Failed, says: "container operator: ImagePullBackOff: no such tag"},
		"finds a webhook without a server": {objects: []client.Object{webhook(admissionv1.Fail, "pods")},
			check: "webhooks", status: doctor.Warning, says: "pods.policies.example (Service policies/server)"},
		"ignores a webhook that may fail": {objects: []client.Object{webhook(admissionv1.Ignore, "pods")},
			check: "webhooks", status: doctor.OK},
		"ignores a webhook about other resources": {objects: []client.Object{webhook(admissionv1.Fail, "endpoints")},
			check: "webhooks", status: doctor.OK},
		"reports a cluster without Ready nodes": {objects: []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, check: "nodes", status: doctor.Failed, says: "none of the 1 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			version := tt.version
			if version == "" {
				version = "v1.36.3"
			}
			m := doctor.Management{
				Client: fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(tt.objects...).Build(), StorageClass: tt.class,
				Version: func(context.Context) (string, error) { return version, nil },
			}
			got := of(t, doctor.Run(t.Context(), m.Checks()), "cluster", tt.check)
			g.Expect(got.Status).To(Equal(tt.status), "%+v", got)
			g.Expect(got.Message).To(ContainSubstring(tt.says))
		})
	}
}

// TestManagementWithoutRights checks that missing rights are neither success nor failure.
func TestManagementWithoutRights(t *testing.T) {
	g := NewWithT(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no rights"))
	c := fake.NewClientBuilder().WithScheme(kube.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden
		},
	}).Build()
	m := doctor.Management{Client: c, Installed: true, Version: func(context.Context) (string, error) {
		return "v1.36.3",
			nil
	}}
	for _, got := range doctor.Run(t.Context(), m.Checks())[1:] {
		g.Expect(got.Status).To(Equal(doctor.Skipped), "%+v", got)
		g.Expect(got.Message).To(ContainSubstring("you have no right to read"))
	}
	results := doctor.Run(t.Context(), m.Essential())
	g.Expect(doctor.Preflight(results, nil)).To(Succeed(), "a tenant can create a cluster without these rights")
	n := doctor.Network{Client: c, Host: "192.0.2.1"}
	g.Expect(of(t, doctor.Run(t.Context(), n.Checks()), "network", "kubelets").Status).To(Equal(doctor.Skipped))
}

func TestPublishedAddress(t *testing.T) {
	node := func(name, address string) client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
		}}
	}
	for name, tt := range map[string]struct {
		host   string
		nodes  []client.Object
		status doctor.Status
		says   string
	}{
		"accepts the address of the only node": {nodes: []client.Object{node("a", "10.0.0.1")}, status: doctor.OK,
			says: "10.0.0.1, the address of node a"},
		"warns about one of several nodes": {nodes: []client.Object{node("a", "10.0.0.1"), node("b", "10.0.0.2")},
			status: doctor.Warning, says: "while that node is away"},
		"refuses an address of the machine": {host: "127.0.0.1", status: doctor.Failed,
			says: "which machines cannot reach"},
		"refuses a name that has no address":    {host: "api.invalid", status: doctor.Failed, says: "has no IP address"},
		"reports a cluster without any address": {status: doctor.Failed, says: "no Ready node with an address"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := doctor.Network{Client: fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(tt.nodes...).Build(),
				Host: tt.host}
			got := of(t, doctor.Run(t.Context(), n.Checks()), "network", "address")
			g.Expect(got.Status).To(Equal(tt.status), "%+v", got)
			g.Expect(got.Message).To(ContainSubstring(tt.says))
		})
	}
}
