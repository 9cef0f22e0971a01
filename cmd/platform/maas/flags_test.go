// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/cluster"
)

// pooled returns the MAAS platform of the NodePool that the flags of `create nodepool maas` produce.
func pooled(t *testing.T, args ...string) (*hyperv1.MAASNodePoolPlatform, error) {
	t.Helper()
	p, flags := &NodePool{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	p.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := p.Complete(); err != nil {
		return nil, err
	}
	pool := &hyperv1.NodePool{}
	p.Apply(pool)
	if pool.Spec.Platform.Type != hyperv1.MAASPlatform {
		t.Errorf("the pool is of platform %q", pool.Spec.Platform.Type)
	}
	return pool.Spec.Platform.MAAS, nil
}

// TestMachineFlags checks the field that each flag sets, both for the cluster's first pool and for a later one.
func TestMachineFlags(t *testing.T) {
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	type spec = hyperv1.MAASNodePoolPlatform
	lxd := func(change func(*hyperv1.MAASLXDNodePool)) func(*spec) {
		return func(s *spec) {
			s.LXD = &hyperv1.MAASLXDNodePool{Enabled: true}
			change(s.LXD)
		}
	}
	const subnet = " --static-ip-cidr=10.0.0.0/24"
	for args, does := range map[string]func(*spec){
		"":                               func(*spec) {},
		"--machine-type=r650":            func(s *spec) { s.MachineType = "r650" },
		"--zone=z1":                      func(s *spec) { s.Zone = "z1" },
		"--failure-domain=z1":            func(s *spec) { s.FailureDomain = "z1" },
		"--zone=z1 --failure-domain=z1":  func(s *spec) { s.Zone, s.FailureDomain = "z1", "z1" },
		"--resource-pool=blue":           func(s *spec) { s.ResourcePool = "blue" },
		"--image=custom/rhcos":           func(s *spec) { s.Image = "custom/rhcos" },
		"--user-data-format=Ignition":    func(s *spec) { s.UserDataFormat = hyperv1.UserDataIgnition },
		"--user-data-format=CloudConfig": func(s *spec) { s.UserDataFormat = hyperv1.UserDataCloudConfig },
		"--tags=a,b --not-tags=c":        func(s *spec) { s.Tags, s.NotTags = []hyperv1.MAASTag{"a", "b"}, []hyperv1.MAASTag{"c"} },
		"--min-cpu=4":                    func(s *spec) { s.MinCPU = ptr.To[int32](4) },
		"--min-memory=4096":              func(s *spec) { s.MinMemory = ptr.To[int32](4096) },
		"--min-disk-size=50":             func(s *spec) { s.MinDiskSize = ptr.To[int32](50) },
		"--ephemeral":                    func(s *spec) { s.Ephemeral = ptr.To(true) },
		"--erase=Secure":                 func(s *spec) { s.Erase = "Secure" },
		"--allocate-timeout=1m":          func(s *spec) { s.AllocateTimeout = minutes(1) },
		"--deploy-timeout=2m":            func(s *spec) { s.DeployTimeout = minutes(2) },
		"--boot-timeout=3m":              func(s *spec) { s.BootTimeout = minutes(3) },
		"--join-timeout=4m":              func(s *spec) { s.JoinTimeout = minutes(4) },
		"--disk-wipe":                    func(s *spec) { s.DiskWipe = &hyperv1.MAASDiskWipe{Enabled: ptr.To(true)} },
		"--disk-wipe=false":              func(s *spec) { s.DiskWipe = &hyperv1.MAASDiskWipe{Enabled: ptr.To(false)} },
		"--disk-wipe-device=/dev/vda":    func(s *spec) { s.DiskWipe = &hyperv1.MAASDiskWipe{Device: "/dev/vda"} },
		"--disk-wipe-partition=6":        func(s *spec) { s.DiskWipe = &hyperv1.MAASDiskWipe{Partition: 6} },
		"--ephemeral --disk-wipe=false": func(s *spec) {
			s.Ephemeral, s.DiskWipe = ptr.To(true), &hyperv1.MAASDiskWipe{Enabled: ptr.To(false)}
		},
		"--lxd-enabled":                              lxd(func(*hyperv1.MAASLXDNodePool) {}),
		"--lxd-enabled --lxd-storage-pool=a":         lxd(func(l *hyperv1.MAASLXDNodePool) { l.StoragePool = "a" }),
		"--lxd-enabled --lxd-network=a":              lxd(func(l *hyperv1.MAASLXDNodePool) { l.Network = "a" }),
		"--lxd-enabled --lxd-profile=a":              lxd(func(l *hyperv1.MAASLXDNodePool) { l.Profile = "a" }),
		"--lxd-enabled --lxd-project=a":              lxd(func(l *hyperv1.MAASLXDNodePool) { l.Project = "a" }),
		"--lxd-enabled --lxd-vm-host=a":              lxd(func(l *hyperv1.MAASLXDNodePool) { l.VMHost = "a" }),
		"--lxd-enabled --lxd-disk-size=40":           lxd(func(l *hyperv1.MAASLXDNodePool) { l.DiskSize = ptr.To[int32](40) }),
		"--lxd-enabled --lxd-bridge=br0":             lxd(func(l *hyperv1.MAASLXDNodePool) { l.Bridge = "br0" }),
		"--lxd-enabled --lxd-devices=br1,br2":        lxd(func(l *hyperv1.MAASLXDNodePool) { l.Devices = []string{"br1", "br2"} }),
		"--lxd-enabled --lxd-anti-affinity=Required": lxd(func(l *hyperv1.MAASLXDNodePool) { l.AntiAffinity = "Required" }),
		"--static-ip=10.0.0.9" + subnet:              func(s *spec) { s.StaticIP = &hyperv1.MAASStaticIP{IP: "10.0.0.9", CIDR: "10.0.0.0/24"} },
		"--static-ip-range=10.0.0.9-10.0.0.12" + subnet: func(s *spec) {
			s.StaticIP = &hyperv1.MAASStaticIP{Range: &hyperv1.MAASIPRange{Start: "10.0.0.9", End: "10.0.0.12"}, CIDR: "10.0.0.0/24"}
		},
		"--static-ip=10.0.0.9 --static-ip-gateway=10.0.0.1 --static-ip-nameservers=10.0.0.2,10.0.0.3" + subnet: func(s *spec) {
			s.StaticIP = &hyperv1.MAASStaticIP{IP: "10.0.0.9", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Nameservers: []hyperv1.MAASNameserver{"10.0.0.2", "10.0.0.3"}}
		},
	} {
		t.Run("When the flags are "+args+" it should ask for that and leave the rest to the API", func(t *testing.T) {
			want := &spec{Image: "ubuntu/noble"}
			does(want)
			got, err := pooled(t, strings.Fields(args)...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("create nodepool (-want +got):\n%s", diff)
			}
			p, err := complete(t, "", key, "", append(strings.Fields(args), "--maas-endpoint", "https://maas/MAAS")...)
			if err != nil {
				t.Fatal(err)
			}
			first := &hyperv1.NodePool{}
			p.ApplyNodePool(first)
			if diff := cmp.Diff(want, first.Spec.Platform.MAAS); diff != "" {
				t.Errorf("create cluster (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("When a NodePool has its own credentials, it should reference them", func(t *testing.T) {
		got, err := pooled(t, "--identity-ref=other")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(got.IdentityRef).To(Equal(&hyperv1.MAASIdentityReference{Name: "other"}))
	})
}

func TestMachineRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		says       string
	}{
		{"zones differ", "--zone=a --failure-domain=b", "--zone and --failure-domain name the same thing"},
		{"the user data format is unknown", "--user-data-format=ignition", `--user-data-format "ignition": use Ignition or CloudConfig`},
		{"a tag is both required and excluded", "--tags=a,b --not-tags=c,b", `tag "b" is in --tags and in --not-tags`},
		{"disks are left alone and wiped", "--ephemeral --disk-wipe", "--ephemeral leaves the disks alone"},
		{"LXD is not wanted but described", "--lxd-disk-size=40", "--lxd-... flags have an effect with --lxd-enabled only"},
		{"LXD is switched off and described", "--lxd-enabled=false --lxd-devices=br1", "--lxd-... flags have an effect with --lxd-enabled only"},
		{"both one address and a range are set", "--static-ip=10.0.0.9 --static-ip-range=10.0.0.9-10.0.0.12 --static-ip-cidr=10.0.0.0/24", "set one of them"},
		{"a range has no end", "--static-ip-range=10.0.0.9 --static-ip-cidr=10.0.0.0/24", `--static-ip-range "10.0.0.9" is not of the form first-last`},
		{"an address has no CIDR", "--static-ip=10.0.0.9", "static addresses need --static-ip-cidr"},
		{"a gateway is set without an address", "--static-ip-gateway=10.0.0.1", "static addresses need --static-ip-cidr"},
		{"name servers are for nothing", "--static-ip-nameservers=10.0.0.1", "static addresses need --static-ip-cidr"},
		{"a CIDR is set without an address", "--static-ip-cidr=10.0.0.0/24", "--static-ip-... flags need --static-ip or --static-ip-range"},
	} {
		t.Run("When "+tt.name+" it should say so in one sentence, for either command", func(t *testing.T) {
			g := NewWithT(t)
			_, err := pooled(t, strings.Fields(tt.args)...)
			g.Expect(err).To(MatchError(And(ContainSubstring(tt.says), Not(ContainSubstring("\n")))))
			_, err = complete(t, "", key, "", append(strings.Fields(tt.args), "--maas-endpoint", "https://maas/MAAS")...)
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
		})
	}
}

func TestClusterFlags(t *testing.T) {
	type spec = hyperv1.MAASPlatformSpec
	for args, does := range map[string]func(*spec){
		"":                           func(*spec) {},
		"--credentials-name=mine":    func(s *spec) { s.IdentityRef.Name = "mine" },
		"--maas-zone=z1":             func(s *spec) { s.Zone = "z1" },
		"--maas-dns-domain=d":        func(s *spec) { s.DNSDomain = "d" },
		"--maas-resource-pool=blue":  func(s *spec) { s.ResourcePool = "blue" },
		"--maas-failure-domains=a,b": func(s *spec) { s.FailureDomains = []hyperv1.MAASName{"a", "b"} },
		"--resource-pool=of":         func(*spec) {}, // It belongs to the pool.
		"--zone=z2":                  func(s *spec) { s.Zone = "z2" },
		"--zone=z2 --maas-zone=z1":   func(s *spec) { s.Zone = "z1" },
	} {
		t.Run("When the flags are "+args+" the cluster should say that of its machines", func(t *testing.T) {
			want := &spec{IdentityRef: hyperv1.MAASIdentityReference{Name: "demo-maas-credentials"}}
			does(want)
			p, err := complete(t, "", key, "", append(strings.Fields(args), "--maas-endpoint", "https://maas/MAAS")...)
			if err != nil {
				t.Fatal(err)
			}
			hc := &hyperv1.HostedCluster{}
			p.Apply(hc)
			if diff := cmp.Diff(want, hc.Spec.Platform.MAAS); diff != "" {
				t.Errorf("platform (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCredentialsRefusals checks that errors never contain what may be a secret.
func TestCredentialsRefusals(t *testing.T) {
	const https = "https://maas.example:5443/MAAS"
	for _, tt := range []struct {
		name string
		key  string
		args []string
		says string
	}{
		{"there is no endpoint", key, nil, "--maas-endpoint is required"},
		{"the endpoint has no scheme", key, []string{"--maas-endpoint=maas:5240/MAAS"}, "--maas-endpoint is not an http or https URL without user"},
		{"the endpoint is a file URL", key, []string{"--maas-endpoint=file:///MAAS"}, "--maas-endpoint is not an http or https URL"},
		{"the endpoint has no host", key, []string{"--maas-endpoint=https:///MAAS"}, "--maas-endpoint is not an http or https URL"},
		{"the endpoint has a password", key, []string{"--maas-endpoint=https://u:sesame@maas/MAAS"}, "without user"},
		{"the endpoint cannot be parsed", key, []string{"--maas-endpoint=https://u:sesame@%zz"}, "without user"},
		{"two keys are set", key, []string{"--maas-endpoint", https, "--maas-api-key", key, "--maas-api-key-file=DIR/key"}, "set one of --maas-api-key-file and --maas-api-key"},
		{"the key file is missing", key, []string{"--maas-endpoint", https, "--maas-api-key-file=DIR/none"}, "--maas-api-key-file: "},
		{"the CA bundle is missing", key, []string{"--maas-endpoint", https, "--maas-ca-bundle=DIR/none"}, "--maas-ca-bundle: "},
		{"the key is blank", " \n", []string{"--maas-endpoint", https}, "the MAAS API key is required"},
		{"the key has no consumer", ":token:sesame", []string{"--maas-endpoint", https}, "is not of the form consumer:token:secret"},
		{"the key has no secret", "consumer:sesame:", []string{"--maas-endpoint", https}, "is not of the form consumer:token:secret"},
		{"the key has four parts", "consumer:token:sesame:x", []string{"--maas-endpoint", https}, "is not of the form consumer:token:secret"},
		{"a Secret and an endpoint are set", "", []string{"--credentials-secret=shared", "--maas-endpoint", https}, "leave out --maas-endpoint"},
		{"a Secret and a key are set", "", []string{"--credentials-secret=shared", "--maas-api-key", key}, "leave out"},
		{"a Secret and a key file are set", "", []string{"--credentials-secret=shared", "--maas-api-key-file=DIR/key"}, "leave out"},
		{"a Secret and a CA bundle are set", "", []string{"--credentials-secret=shared", "--maas-ca-bundle=DIR/key"}, "leave out"},
		{"a Secret and a credentials name are set", "", []string{"--credentials-secret=shared", "--credentials-name=mine"}, "leave out"},
	} {
		t.Run("When "+tt.name+" it should say so", func(t *testing.T) {
			g := NewWithT(t)
			_, err := complete(t, "", tt.key, key, tt.args...)
			g.Expect(err).To(MatchError(And(ContainSubstring(tt.says), Not(ContainSubstring("sesame")), Not(ContainSubstring("\n")))))
		})
	}
	t.Run("When all flags are set, the client configuration should contain their values", func(t *testing.T) {
		g, ca := NewWithT(t), filepath.Join(t.TempDir(), "ca.pem")
		g.Expect(os.WriteFile(ca, []byte("CA\n"), 0o600)).To(Succeed())
		c, flags := NewCredentials(), pflag.NewFlagSet("test", pflag.ContinueOnError)
		c.AddFlags(flags)
		g.Expect(flags.Parse([]string{"--maas-endpoint", https, "--maas-api-key-file=-", "--maas-ca-bundle", ca})).To(Succeed())
		g.Expect(c.Given()).To(BeTrue())
		g.Expect(c.Complete(strings.NewReader(" "+key+" \n"), nil)).To(Succeed(), "nobody listens to warnings")
		config := c.Config()
		g.Expect([]string{config.Endpoint, config.APIKey, string(config.CABundle)}).To(Equal([]string{https, key, "CA\n"}))
	})
}

// TestSecretOfTheCluster checks that the Secret has the required keys and no empty ones.
func TestSecretOfTheCluster(t *testing.T) {
	p, err := complete(t, "", key, "", "--maas-endpoint", "https://maas/MAAS")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	objs := p.Objects("team", "demo")
	g.Expect(objs[0].GetNamespace()).To(Equal("team"))
	g.Expect(objs[0]).To(HaveField("Data", And(HaveLen(2), HaveKey(hyperv1.MAASEndpointKey), HaveKey(hyperv1.MAASAPIKeyKey))))
	var platform cluster.Platform = p
	hc := &hyperv1.HostedCluster{}
	platform.Apply(hc)
	g.Expect(hc.Spec.Platform.Type).To(Equal(hyperv1.MAASPlatform))
}

// TestAddress checks that the command reads the node address from the management cluster and returns its error.
func TestAddress(t *testing.T) {
	p, flags := NewCluster(), pflag.NewFlagSet("test", pflag.ContinueOnError)
	p.getenv = func(string) string { return key }
	p.AddFlags(flags)
	g := NewWithT(t)
	g.Expect(flags.Parse([]string{"--maas-endpoint=https://maas/MAAS"})).To(Succeed())
	away := errors.New("no such host")
	g.Expect(p.Complete(t.Context(), cluster.Environment{Name: "demo", Client: func() (client.Client, error) { return nil, away }})).To(MatchError(away))
}
