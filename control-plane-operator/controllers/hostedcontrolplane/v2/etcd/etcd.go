// SPDX-License-Identifier: Apache-2.0

// Package etcd is the component that stores the hosted cluster: a StatefulSet of one or three members. It uses the
// unmodified upstream etcd image, which has no shell and needs none.
package etcd

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
	"github.com/openshift/hypershift/support/component"
)

// Name is the component's name.
const Name = "etcd"

// DataDir is the data directory of a member, on its volume.
const DataDir = "/var/lib/data"

// Prefix is the first path segment of all keys that an API server stores.
const Prefix = "kubernetes.io"

const (
	dataVolume  = "data"
	certDir     = "/etc/etcd/tls"
	defaultSize = "8Gi"
)

//go:embed manifests
var manifests embed.FS

// New returns the component.
func New() *component.Component {
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:      Name,
		Manifests: files,
		Enabled:   enabled,
		Adapters: map[string]component.Adapter{
			"config.yaml":      component.Adapt(adaptConfig),
			"statefulset.yaml": component.Adapt(adapt),
			"pdb.yaml":         component.DisruptionBudget(),
		},
		Options: component.Options{
			MultiZone: true, HighlyAvailableReplicas: 3, Priority: component.PriorityEtcd,
		},
	}
}

func enabled(_ context.Context, scope *component.Scope) (bool, error) {
	return scope.HCP.Spec.Etcd.ManagementType != hyperv1.Unmanaged, nil
}

// URLs returns the URLs at which the API server reaches etcd, one for each member. A connection through one Service
// for all members would stay with its member, even if that member no longer answers. A new connection might reach the
// same member again. A client that knows all members switches to another member.
func URLs(hcp *hyperv1.HostedControlPlane) []string {
	pods := Pods(hcp)
	if pki.BringsEtcd(hcp) || len(pods) < 2 {
		return strings.Split(URL(hcp), ",")
	}
	urls := make([]string, len(pods))
	for i, pod := range pods {
		urls[i] = ClientURL(hcp.Namespace, pod)
	}
	return urls
}

// URL returns a URL at which clients reach etcd. For an etcd that the user provides, it may be several URLs, separated
// by commas.
func URL(hcp *hyperv1.HostedControlPlane) string {
	if pki.BringsEtcd(hcp) {
		return hcp.Spec.Etcd.Unmanaged.Endpoint
	}
	return fmt.Sprintf("https://etcd-client.%s.svc:2379", hcp.Namespace)
}

func adapt(ctx context.Context, scope *component.Scope, set *appsv1.StatefulSet) error {
	quota, err := readQuota(ctx, scope.Client, scope.HCP)
	if err != nil {
		return err
	}
	hash, err := configHash(scope.HCP, quota)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&set.Spec.Template.ObjectMeta, configAnnotation, hash)
	set.Spec.Template.Spec.Containers[0].Args = []string{"--config-file=" + configDir + "/$(POD_NAME).yaml"}
	return setStorage(scope.HCP, set)
}

// setStorage gives each member a volume with the size and class of the spec.
func setStorage(hcp *hyperv1.HostedControlPlane, set *appsv1.StatefulSet) error {
	claim := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: dataVolume},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: Size(hcp)},
			},
		},
	}
	if managed := hcp.Spec.Etcd.Managed; managed != nil && managed.Storage.PersistentVolume != nil {
		claim.Spec.StorageClassName = managed.Storage.PersistentVolume.StorageClassName
	}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	return nil
}
