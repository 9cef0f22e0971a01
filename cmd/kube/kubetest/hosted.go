// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
)

// AdminKubeconfig is the name of the Secret with the kubeconfig in the hosted namespaces of Hosted.
const AdminKubeconfig = "admin-kubeconfig"

// Hosted returns the hosted namespace of a cluster with its admin kubeconfig, as the operators make them.
func Hosted(cluster client.ObjectKey, kubeconfig []byte) []client.Object {
	namespace := kube.HostedNamespace(cluster.Namespace, cluster.Name)
	hcp := &hyperv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.Name, UID: "the-control-plane"},
	}
	hcp.Status.KubeConfig = &hyperv1.KubeconfigSecretRef{Name: AdminKubeconfig, Key: "kubeconfig"}
	owner := metav1.OwnerReference{
		APIVersion: hyperv1.GroupVersion.String(), Kind: "HostedControlPlane", Name: hcp.Name, UID: hcp.UID,
	}
	return []client.Object{
		hcp,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace, Annotations: map[string]string{hyperv1.HostedClusterAnnotation: cluster.String()},
		}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: AdminKubeconfig, OwnerReferences: []metav1.OwnerReference{owner},
			},
			Data: map[string][]byte{"kubeconfig": kubeconfig},
		},
	}
}
