// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
)

// complete parses arguments without a management cluster.
func complete(t *testing.T, args ...string) (*Cluster, error) {
	t.Helper()
	p := &Cluster{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	p.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	away := func() (client.Client, error) { return nil, errors.New("no cluster") }
	return p, p.Complete(t.Context(), cluster.Environment{Client: away, Stdin: strings.NewReader("from stdin")})
}

func TestRefusals(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		says string
	}{
		{"When an infra namespace has no infra kubeconfig", []string{"--infra-namespace", "vms"}, "needs --infra-kubeconfig-file"},
		{"When an infra kubeconfig has no infra namespace", []string{"--infra-kubeconfig-file", "-"}, "needs --infra-namespace"},
		{"When the infra namespace is invalid", []string{"--infra-kubeconfig-file", "-", "--infra-namespace", "A_B"}, `--infra-namespace "A_B"`},
		{"When the infra kubeconfig is missing", []string{"--infra-kubeconfig-file", "/nowhere", "--infra-namespace", "vms"}, "--infra-kubeconfig-file"},
		{"When the infra kubeconfig is empty", []string{"--infra-kubeconfig-file", empty, "--infra-namespace", "vms"}, "is empty"},
		{"When the publishing strategy is unknown", []string{"--service-publishing-strategy", "None"}, "use Ingress or NodePort"},
		{"When the API server address would have no effect", []string{"--api-server-address", "10.0.0.1"}, "--service-publishing-strategy NodePort"},
		{"When the API server address cannot be looked up", []string{"--service-publishing-strategy", "NodePort"}, "no cluster"},
		{"When a storage class mapping has one class", []string{"--infra-storage-class-mapping", "a"}, "--infra-storage-class-mapping"},
		{"When a snapshot class mapping has an unknown option", []string{"--infra-volumesnapshot-class-mapping", "a/b,c=d"}, "--infra-volumesnapshot-class-mapping"},
		{"When the memory is not a quantity", []string{"--memory", "much"}, "--memory"},
		{"When the core count is zero", []string{"--cores", "0"}, "--cores 0"},
		{"When the QoS class is unknown", []string{"--qos-class", "BestEffort"}, "use one of Burstable, Guaranteed"},
		{"When the volume mode is unknown", []string{"--root-volume-volume-mode", "File"}, "use one of Filesystem, Block"},
		{"When the access mode is unknown", []string{"--root-volume-access-modes", "ReadWriteOnce,All"}, "--root-volume-access-modes"},
		{"When an additional network has no name key", []string{"--additional-network", "lab"}, "name:lab/storage"},
		{"When the VM has no network", []string{"--attach-default-network=false"}, "--additional-network"},
		{"When the device count is not a number", []string{"--host-device-name", "a,count:x"}, "--host-device-name"},
		{"When the device count has no key", []string{"--host-device-name", "a,2"}, "--host-device-name"},
	} {
		t.Run(tt.name+", it should say so", func(t *testing.T) {
			_, err := complete(t, tt.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.says)))
		})
	}
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	p, err := complete(t)
	g.Expect(err).NotTo(HaveOccurred())
	hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
	p.Apply(hc)
	p.ApplyNodePool(pool)
	g.Expect(hc.Spec.Platform).To(Equal(hyperv1.PlatformSpec{Type: hyperv1.KubevirtPlatform, Kubevirt: &hyperv1.KubevirtPlatformSpec{}}))
	g.Expect(hc.Spec.Services[0].ServicePublishingStrategy.Type).To(Equal(hyperv1.LoadBalancer))
	g.Expect(p.Objects("clusters", "demo")).To(BeEmpty())
	want := &hyperv1.KubevirtNodePoolPlatform{
		RootVolume: &hyperv1.KubevirtRootVolume{KubevirtVolume: hyperv1.KubevirtVolume{Type: "Persistent",
			Persistent: &hyperv1.KubevirtPersistentVolume{Size: ptr.To(resource.MustParse("32Gi"))}}},
		Compute:                    &hyperv1.KubevirtCompute{Memory: ptr.To(resource.MustParse("4Gi")), Cores: ptr.To[uint32](2), QosClass: ptr.To(hyperv1.QoSClassBurstable)},
		NetworkInterfaceMultiQueue: ptr.To(hyperv1.MultiQueueEnable), AttachDefaultNetwork: ptr.To(true),
	}
	if diff := cmp.Diff(want, pool.Spec.Platform.Kubevirt); diff != "" {
		t.Errorf("the pool (-want +got):\n%s", diff)
	}
}

func TestAll(t *testing.T) {
	g := NewWithT(t)
	p, err := complete(t, "--infra-kubeconfig-file", "-", "--infra-namespace", "vms", "--service-publishing-strategy", "NodePort", "--api-server-address", "10.0.0.1",
		"--infra-storage-class-mapping", "rbd/fast,group=ceph", "--infra-storage-class-mapping", "nfs/slow", "--infra-volumesnapshot-class-mapping", "snap/fast,group=ceph",
		"--memory", "16Gi", "--cores", "8", "--qos-class", "Guaranteed", "--root-volume-size", "100", "--root-volume-storage-class", "fast",
		"--root-volume-access-modes", "ReadWriteMany,ReadOnly", "--root-volume-volume-mode", "Block", "--root-volume-cache-strategy", "None", "--containerdisk", "disk:1",
		"--network-multiqueue", "Disable", "--additional-network", "name:lab/storage", "--attach-default-network=false", "--vm-node-selector", "gpu=yes",
		"--host-device-name", "example.com/a,count:2", "--host-device-name", "example.com/b")
	g.Expect(err).NotTo(HaveOccurred())
	hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
	hc.Name = "demo"
	p.Apply(hc)
	p.ApplyNodePool(pool)
	for _, service := range hc.Spec.Services {
		g.Expect(service.ServicePublishingStrategy.NodePort).To(HaveValue(HaveField("Address", "10.0.0.1")), "%s", service.Service)
	}
	if diff := cmp.Diff(&hyperv1.KubevirtPlatformSpec{
		Credentials: &hyperv1.KubevirtPlatformCredentials{InfraNamespace: "vms", InfraKubeConfigSecret: &hyperv1.KubeconfigSecretRef{Name: "demo-infra-credentials", Key: "kubeconfig"}},
		StorageDriver: &hyperv1.KubevirtStorageDriverSpec{Type: "Manual", Manual: &hyperv1.KubevirtManualStorageDriverConfig{
			StorageClassMapping: []hyperv1.KubevirtStorageClassMapping{{InfraStorageClassName: "rbd", GuestStorageClassName: "fast", Group: "ceph"},
				{InfraStorageClassName: "nfs", GuestStorageClassName: "slow"}},
			VolumeSnapshotClassMapping: []hyperv1.KubevirtVolumeSnapshotClassMapping{{InfraVolumeSnapshotClassName: "snap", GuestVolumeSnapshotClassName: "fast", Group: "ceph"}},
		}},
	}, hc.Spec.Platform.Kubevirt); diff != "" {
		t.Errorf("the cluster (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&hyperv1.KubevirtNodePoolPlatform{
		RootVolume: &hyperv1.KubevirtRootVolume{
			Image:         &hyperv1.KubevirtDiskImage{ContainerDiskImage: ptr.To("disk:1")},
			CacheStrategy: &hyperv1.KubevirtCachingStrategy{Type: "None"},
			KubevirtVolume: hyperv1.KubevirtVolume{Type: "Persistent", Persistent: &hyperv1.KubevirtPersistentVolume{Size: ptr.To(resource.MustParse("100Gi")),
				StorageClass: ptr.To("fast"), AccessModes: []hyperv1.PersistentVolumeAccessMode{"ReadWriteMany", "ReadOnly"}, VolumeMode: ptr.To("Block")}},
		},
		Compute:                    &hyperv1.KubevirtCompute{Memory: ptr.To(resource.MustParse("16Gi")), Cores: ptr.To[uint32](8), QosClass: ptr.To(hyperv1.QoSClassGuaranteed)},
		NetworkInterfaceMultiQueue: ptr.To(hyperv1.MultiQueueDisable), AttachDefaultNetwork: ptr.To(false), NodeSelector: map[string]string{"gpu": "yes"},
		AdditionalNetworks:  []hyperv1.KubevirtNetwork{{Name: "lab/storage"}},
		KubevirtHostDevices: []hyperv1.KubevirtHostDevice{{DeviceName: "example.com/a", Count: 2}, {DeviceName: "example.com/b", Count: 1}},
	}, pool.Spec.Platform.Kubevirt); diff != "" {
		t.Errorf("the pool (-want +got):\n%s", diff)
	}
	objects := p.Objects("clusters", "demo")
	g.Expect(objects).To(HaveLen(1))
	g.Expect(objects[0].GetName()).To(Equal("demo-infra-credentials"))
	g.Expect(objects[0].(*corev1.Secret).Data).To(HaveKeyWithValue("kubeconfig", []byte("from stdin")))
}
