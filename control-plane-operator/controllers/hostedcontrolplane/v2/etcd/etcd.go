// Package etcd is the component that stores the hosted cluster: a StatefulSet of one or three members with upstream's
// plain etcd image, which has no shell and needs none.
package etcd

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/component"
	"github.com/openshift/hypershift/support/tlsprofile"
)

// Name is the component's name.
const Name = "etcd"

const (
	dataVolume  = "data"
	dataDir     = "/var/lib/data"
	certDir     = "/etc/etcd/tls"
	defaultSize = "8Gi"
)

//go:embed manifests
var manifests embed.FS

// New makes the component.
func New() *component.Component {
	files, _ := fs.Sub(manifests, "manifests")
	return &component.Component{
		Name:      Name,
		Manifests: files,
		Enabled:   enabled,
		Adapters: map[string]component.Adapter{
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

// URL is where the API server reaches etcd.
func URL(hcp *hyperv1.HostedControlPlane) string {
	if hcp.Spec.Etcd.ManagementType == hyperv1.Unmanaged && hcp.Spec.Etcd.Unmanaged != nil {
		return hcp.Spec.Etcd.Unmanaged.Endpoint
	}
	return fmt.Sprintf("https://etcd-client.%s.svc:2379", hcp.Namespace)
}

func adapt(_ context.Context, scope *component.Scope, set *appsv1.StatefulSet) error {
	container := &set.Spec.Template.Spec.Containers[0]
	container.Args = args(scope.HCP, New().Replicas(scope.HCP))
	return setStorage(scope.HCP, set)
}

func args(hcp *hyperv1.HostedControlPlane, members int32) []string {
	host := func(pod string) string { return fmt.Sprintf("%s.etcd-discovery.%s.svc", pod, hcp.Namespace) }
	self := host("$(POD_NAME)")
	var cluster []string
	for i := range members {
		pod := fmt.Sprintf("%s-%d", Name, i)
		cluster = append(cluster, fmt.Sprintf("%s=https://%s:2380", pod, host(pod)))
	}
	tls := tlsprofile.Of(hcp)
	var f component.Flags
	f.Set("name", "$(POD_NAME)")
	f.Set("data-dir", dataDir)
	f.Set("initial-cluster", strings.Join(cluster, ","))
	f.Set("initial-cluster-state", "new")
	f.Set("initial-cluster-token", hcp.Namespace)
	f.Set("initial-advertise-peer-urls", "https://"+self+":2380")
	f.Set("advertise-client-urls", "https://"+self+":2379")
	f.Set("listen-peer-urls", "https://0.0.0.0:2380")
	f.Set("listen-client-urls", "https://0.0.0.0:2379")
	// The kubelet has no client certificate for its probes, so health and metrics are served without one, and hold
	// nothing that is stored.
	f.Set("listen-metrics-urls", "http://0.0.0.0:2381")
	f.Set("client-cert-auth", "true")
	f.Set("cert-file", certDir+"/server/server.crt")
	f.Set("key-file", certDir+"/server/server.key")
	f.Set("trusted-ca-file", certDir+"/etcd-ca/ca.crt")
	f.Set("peer-client-cert-auth", "true")
	f.Set("peer-cert-file", certDir+"/peer/peer.crt")
	f.Set("peer-key-file", certDir+"/peer/peer.key")
	f.Set("peer-trusted-ca-file", certDir+"/etcd-ca/ca.crt")
	f.Set("quota-backend-bytes", strconv.FormatInt(quota(hcp), 10))
	f.Set("snapshot-count", "10000")
	f.Set("tls-min-version", tls.EtcdMinVersion())
	f.SetUnlessEmpty("cipher-suites", strings.Join(tls.Ciphers, ","))
	return f
}

// quota is how many bytes the database may grow to: the log and the snapshots beside it have a fifth of the volume. An etcd that reaches
// its quota refuses writes and can be mended; one whose disk is full cannot even compact.
func quota(hcp *hyperv1.HostedControlPlane) int64 {
	size := size(hcp)
	return size.Value() / 5 * 4
}

func size(hcp *hyperv1.HostedControlPlane) resource.Quantity {
	if managed := hcp.Spec.Etcd.Managed; managed != nil && managed.Storage.PersistentVolume != nil && managed.Storage.PersistentVolume.Size != nil {
		return *managed.Storage.PersistentVolume.Size
	}
	return resource.MustParse(defaultSize)
}

// setStorage gives each member a volume of the size and class that the cluster asks for.
func setStorage(hcp *hyperv1.HostedControlPlane, set *appsv1.StatefulSet) error {
	claim := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: dataVolume},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size(hcp)},
			},
		},
	}
	if managed := hcp.Spec.Etcd.Managed; managed != nil && managed.Storage.PersistentVolume != nil {
		claim.Spec.StorageClassName = managed.Storage.PersistentVolume.StorageClassName
	}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	return nil
}
