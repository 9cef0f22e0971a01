// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
)

// made returns the objects that a command line creates.
func made(t *testing.T, args ...string) []client.Object {
	t.Helper()
	c := parse(t, append([]string{"--infra-id", "demo-abcde"}, args...)...)
	g := NewWithT(t)
	g.Expect(c.check(false)).To(Succeed())
	g.Expect(c.readFiles(strings.NewReader(""))).To(Succeed())
	objs, err := c.objects(plain{})
	g.Expect(err).NotTo(HaveOccurred())
	return objs
}

// both returns the cluster and the pool.
func both(objs []client.Object) (hc *hyperv1.HostedCluster, pool *hyperv1.NodePool) {
	for _, obj := range objs {
		switch obj := obj.(type) {
		case *hyperv1.HostedCluster:
			hc = obj
		case *hyperv1.NodePool:
			pool = obj
		}
	}
	return hc, pool
}

// TestFlags checks what each flag changes in cluster and pool. All other fields must be as without the flag.
func TestFlags(t *testing.T) {
	type change func(hc *hyperv1.HostedCluster, pool *hyperv1.NodePool)
	key := filepath.Join(t.TempDir(), "key.pub")
	NewWithT(t).Expect(os.WriteFile(key, []byte("ssh-ed25519 AAAA\n"), 0o600)).To(Succeed())
	network := func(text string) ipnet.IPNet {
		n, err := ipnet.ParseCIDR(text)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return *n
	}
	for args, does := range map[string]change{
		"":                           func(*hyperv1.HostedCluster, *hyperv1.NodePool) {},
		"--base-domain=example.org":  func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Spec.DNS.BaseDomain = "example.org" },
		"--base-domain-prefix=a":     func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Spec.DNS.BaseDomainPrefix = ptr.To("a") },
		"--base-domain-prefix=none":  func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Spec.DNS.BaseDomainPrefix = ptr.To("") },
		"--kas-dns-name=api.example": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Spec.KubeAPIServerDNSName = "api.example" },
		"--fips":                     func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Spec.FIPS = true },
		"--network-type=Calico":      func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Spec.Networking.NetworkType = hyperv1.Calico },
		"--etcd-storage-class=fast": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Spec.Etcd.Managed.Storage.PersistentVolume.StorageClassName = ptr.To("fast")
		},
		"--node-selector=a=b": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Spec.NodeSelector = map[string]string{"a": "b"}
		},
		"--pods-labels=a=b":      func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Spec.Labels = map[string]string{"a": "b"} },
		"--annotations=a=b":      func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Annotations = map[string]string{"a": "b"} },
		"--labels=a=b":           func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Labels["a"] = "b" },
		"--node-pool-replicas=3": func(_ *hyperv1.HostedCluster, pool *hyperv1.NodePool) { pool.Spec.Replicas = ptr.To[int32](3) },
		"--arch=arm64":           func(_ *hyperv1.HostedCluster, pool *hyperv1.NodePool) { pool.Spec.Arch = "arm64" },
		"--auto-repair":          func(_ *hyperv1.HostedCluster, pool *hyperv1.NodePool) { pool.Spec.Management.AutoRepair = true },
		"--node-upgrade-type=Replace": func(_ *hyperv1.HostedCluster, pool *hyperv1.NodePool) {
			pool.Spec.Management.UpgradeType = hyperv1.UpgradeTypeReplace
		},
		"--node-drain-timeout=5m": func(_ *hyperv1.HostedCluster, pool *hyperv1.NodePool) {
			pool.Spec.NodeDrainTimeout = &metav1.Duration{Duration: 5 * time.Minute}
		},
		"--node-volume-detach-timeout=1m": func(_ *hyperv1.HostedCluster, pool *hyperv1.NodePool) {
			pool.Spec.NodeVolumeDetachTimeout = &metav1.Duration{Duration: time.Minute}
		},
		"--ssh-key=" + key: func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) { hc.Spec.SSHKey.Name = "demo-ssh-key" },
		"--control-plane-availability-policy=HighlyAvailable": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Spec.ControllerAvailabilityPolicy = hyperv1.HighlyAvailable
		},
		"--infra-availability-policy=HighlyAvailable": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Spec.InfrastructureAvailabilityPolicy = hyperv1.HighlyAvailable
		},
		"--control-plane-operator-image=r/cpo:1": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Annotations = map[string]string{hyperv1.ControlPlaneOperatorImageAnnotation: "r/cpo:1"}
		},
		"--network-type=Other --allocate-node-cidrs": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Spec.Networking.NetworkType, hc.Spec.Networking.AllocateNodeCIDRs = hyperv1.Other, ptr.To(hyperv1.AllocateNodeCIDRsEnabled)
		},
		"--service-cidr=172.16.0.0/16": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: network("172.16.0.0/16")}}
		},
		"--cluster-cidr=10.0.0.0/16": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Spec.Networking.ClusterNetwork = []hyperv1.ClusterNetworkEntry{{CIDR: network("10.0.0.0/16")}}
		},
		"--machine-cidr=192.168.0.0/24": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: network("192.168.0.0/24")}}
		},
		"--etcd-storage-size=20Gi": func(hc *hyperv1.HostedCluster, _ *hyperv1.NodePool) {
			hc.Spec.Etcd.Managed.Storage.PersistentVolume.Size = ptr.To(resource.MustParse("20Gi"))
		},
		"--pausedUntil=true": func(hc *hyperv1.HostedCluster, pool *hyperv1.NodePool) {
			hc.Spec.PausedUntil, pool.Spec.PausedUntil = ptr.To("true"), ptr.To("true")
		},
		"--release-image=r/other:2": func(hc *hyperv1.HostedCluster, pool *hyperv1.NodePool) {
			hc.Spec.Release.Image, pool.Spec.Release.Image = "r/other:2", "r/other:2"
		},
		"--namespace=team": func(hc *hyperv1.HostedCluster, pool *hyperv1.NodePool) { hc.Namespace, pool.Namespace = "team", "team" },
	} {
		t.Run("When the flags are "+strings.ReplaceAll(args, filepath.Dir(key), "")+" they should change that and nothing else", func(t *testing.T) {
			wantCluster, wantPool := both(made(t))
			does(wantCluster, wantPool)
			gotCluster, gotPool := both(made(t, strings.Fields(args)...))
			if diff := cmp.Diff(wantCluster, gotCluster, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("HostedCluster (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantPool, gotPool, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("NodePool (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFewestFlags checks the cluster that a user gets without optional flags: these defaults last as long as the
// cluster.
func TestFewestFlags(t *testing.T) {
	g := NewWithT(t)
	hc, pool := both(made(t))
	g.Expect(hc.Spec.InfraID).To(Equal("demo-abcde"))
	g.Expect(hc.Spec.DNS).To(Equal(hyperv1.DNSSpec{BaseDomain: "example.com"}))
	g.Expect(hc.Spec.Networking.ServiceNetwork[0].CIDR.String()).To(Equal("172.31.0.0/16"))
	g.Expect(hc.Spec.Networking.ClusterNetwork[0].CIDR.String()).To(Equal("10.132.0.0/14"))
	g.Expect(hc.Spec.Etcd.ManagementType).To(Equal(hyperv1.Managed))
	g.Expect(hc.Spec.Etcd.Managed.Storage.Type).To(Equal(hyperv1.PersistentVolumeEtcdStorage))
	g.Expect(hc.Spec.Etcd.Managed.Storage.PersistentVolume.Size.String()).To(Equal("8Gi"))
	g.Expect(hc.Spec.Etcd.Managed.Storage.PersistentVolume.StorageClassName).To(BeNil(), "the management cluster's own")
	g.Expect(hc.Spec.KubeAPIServerDNSName).To(BeEmpty())
	g.Expect(hc.Spec.PausedUntil).To(BeNil())
	g.Expect(hc.Spec.InfrastructureAvailabilityPolicy).To(BeEmpty())
	g.Expect(hc.Spec.NodeSelector).To(BeEmpty())
	g.Expect(hc.Spec.SSHKey.Name).To(BeEmpty())
	g.Expect(hc.Spec.AdditionalTrustBundle).To(BeNil())
	g.Expect(hc.Spec.Platform.Type).To(Equal(hyperv1.NonePlatform))
	g.Expect(pool.Spec.Management.UpgradeType).To(Equal(hyperv1.UpgradeTypeInPlace), "the platform's own way")
	g.Expect(*pool.Spec.Replicas).To(BeZero())
	g.Expect(pool.Spec.NodeDrainTimeout.Duration).To(BeZero(), "a drain has no limit")
	g.Expect(pool.Spec.NodeVolumeDetachTimeout.Duration).To(BeZero())
	g.Expect(pool.Spec.Management.AutoRepair).To(BeFalse())
}

// TestNamedObjectsAreThere checks that each Secret and ConfigMap that the cluster names is created, with the type and
// key that the operator reads.
func TestNamedObjectsAreThere(t *testing.T) {
	g := NewWithT(t)
	objs := made(t, "--generate-ssh", "--additional-trust-bundle", filepath.Join("..", "root", "testdata", "ca.pem"), "--namespace=team")
	hc, _ := both(objs)
	secrets, configMaps := map[string]*corev1.Secret{}, map[string]*corev1.ConfigMap{}
	for _, obj := range objs[1:] {
		g.Expect(obj.GetNamespace()).To(Equal("team"))
		switch obj := obj.(type) {
		case *corev1.Secret:
			secrets[obj.Name] = obj
			g.Expect(obj.Labels).To(HaveKeyWithValue(hyperv1.SafeToDeleteWithClusterLabel, "true"), obj.Name)
		case *corev1.ConfigMap:
			configMaps[obj.Name] = obj
		}
	}
	pull := secrets[hc.Spec.PullSecret.Name]
	g.Expect(pull.Type).To(Equal(corev1.SecretTypeDockerConfigJson))
	g.Expect(pull.Data).To(HaveKey(corev1.DockerConfigJsonKey))
	g.Expect(secrets[hc.Spec.SSHKey.Name].Data).To(And(HaveKey("id_rsa.pub"), HaveKey("id_rsa")))
	g.Expect(secrets[hc.Spec.SSHKey.Name].Type).To(Equal(corev1.SecretTypeOpaque))
	g.Expect(hc.Spec.SecretEncryption.Type).To(Equal(hyperv1.AESCBC))
	g.Expect(secrets[hc.Spec.SecretEncryption.AESCBC.ActiveKey.Name].Data["key"]).To(HaveLen(32))
	g.Expect(configMaps[hc.Spec.AdditionalTrustBundle.Name].Data).To(HaveKeyWithValue("ca-bundle.crt", ContainSubstring("BEGIN CERTIFICATE")))
	g.Expect(secrets).To(HaveLen(3), "nothing is made that nobody names")

	again := made(t)
	for _, obj := range again {
		if secret, ok := obj.(*corev1.Secret); ok && secret.Name == hc.Spec.SecretEncryption.AESCBC.ActiveKey.Name {
			g.Expect(secret.Data["key"]).NotTo(Equal(secrets[secret.Name].Data["key"]), "no two clusters have one key")
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		says       string // Empty if the flags are valid.
	}{
		{"the name is missing", "--name=", "--name is required"},
		{"the name is not a DNS label", "--name=A_b", `--name "A_b": `},
		{"the name has a dot", "--name=a.b", `--name "a.b": `},
		{"the release is missing", "--release-image=", ""}, // The installation may have a default.
		{"no NodePool is requested", "--node-pool-replicas=-1", ""},
		{"the number is negative", "--node-pool-replicas=-2", "--node-pool-replicas -2"},
		{"the DNS name of the API server is invalid", "--kas-dns-name=a_b", `--kas-dns-name "a_b" is not a DNS name`},
		{"two SSH keys are set", "--ssh-key=a --generate-ssh", "set one of --ssh-key and --generate-ssh"},
		{"node networks need another network", "--allocate-node-cidrs", "--allocate-node-cidrs needs --network-type Other"},
		{"the platform does not support the architecture", "--arch=ppc64le", `--arch "ppc64le": use one of amd64, arm64`},
		{"the network type is unknown", "--network-type=Flannel", `--network-type "Flannel": use one of OVNKubernetes, Calico, Other`},
		{"availability is unknown", "--control-plane-availability-policy=Some", `--control-plane-availability-policy "Some": use one of SingleReplica, HighlyAvailable`},
		{"availability is left empty", "--control-plane-availability-policy=", `--control-plane-availability-policy "": use one of SingleReplica, HighlyAvailable`},
		{"availability of the nodes is left empty", "--infra-availability-policy=", ""},
		{"availability of the nodes is unknown", "--infra-availability-policy=Some", `--infra-availability-policy "Some": use one of SingleReplica, HighlyAvailable`},
		{"upgrades are unknown", "--node-upgrade-type=Maybe", `--node-upgrade-type "Maybe": use one of Replace, InPlace`},
		{"the pause is a timestamp", "--pausedUntil=2026-12-31T12:00:00Z", ""},
		{"the pause is a date without a time", "--pausedUntil=2026-12-31", `--pausedUntil "2026-12-31": use "true" or a date such as`},
		{"the pause is false", "--pausedUntil=false", `--pausedUntil "false"`},
		{"Services have no network", "--service-cidr=x", `--service-cidr "x" is not a network; write it as`},
		{"pods have an address", "--cluster-cidr=10.0.0.1", `--cluster-cidr "10.0.0.1" is not a network; write it as`},
		{"pods are among Services", "--cluster-cidr=172.31.4.0/24", "--cluster-cidr 172.31.4.0/24 overlaps with 172.31.0.0/16"},
		{"machines are among pods", "--machine-cidr=10.132.0.0/24", "--machine-cidr 10.132.0.0/24 overlaps with 10.132.0.0/14"},
		{"machines are apart", "--machine-cidr=10.128.0.0/14", ""},
		{"versions of addresses differ", "--machine-cidr=fd00::/64", ""},
		{"--wait is set with --render", "--wait --render --node-pool-replicas=1", "--wait needs a cluster to wait for"},
		{"--wait is set without nodes", "--wait", "--wait waits for nodes: set --node-pool-replicas to 1 or more"},
		{"--wait is set with a node", "--wait --node-pool-replicas=1", ""},
		{"--timeout is set without --wait", "--timeout=1m", "--timeout is how long --wait waits: add --wait"},
	} {
		t.Run("When "+tt.name+" it should be judged so", func(t *testing.T) {
			g := NewWithT(t)
			c := parse(t, strings.Fields(tt.args)...)
			err := c.check(c.render)
			if tt.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "a refusal is one sentence")
		})
	}
	for name, args := range map[string]string{
		"--etcd-storage-size": "--etcd-storage-size=big", "--service-cidr": "--service-cidr=x", "--cluster-cidr": "--cluster-cidr=x", "--machine-cidr": "--machine-cidr=x",
	} {
		t.Run("When "+args+" was not checked before, it should be refused all the same", func(t *testing.T) {
			_, err := parse(t, args).objects(plain{})
			NewWithT(t).Expect(err).To(MatchError(HavePrefix(name)))
		})
	}
}
