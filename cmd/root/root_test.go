// SPDX-License-Identifier: Apache-2.0

package root_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
	"github.com/openshift/hypershift/cmd/root"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/releaseinfo/releasetest"
	"github.com/openshift/hypershift/support/testenv"
)

const apiKey = "consumer:token:sesame"

// outcome is the visible result of a command.
type outcome struct {
	code           int
	stdout, stderr string
}

func hypershift(ctx context.Context, stdin string, args ...string) outcome {
	var stdout, stderr bytes.Buffer
	cmd := root.Hypershift()
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	code := root.Run(ctx, cmd, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// user runs commands against a management cluster.
type user struct {
	*GomegaWithT
	t          *testing.T
	client     client.Client
	kubeconfig string
}

func newUser(t *testing.T) *user {
	t.Helper()
	config := testenv.Start(t)
	c, err := client.New(config, client.Options{Scheme: kube.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &user{GomegaWithT: NewWithT(t), t: t, client: c, kubeconfig: writeKubeconfig(t, config)}
}

func writeKubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func (u *user) types(stdin string, args ...string) outcome {
	u.t.Helper()
	o := hypershift(u.t.Context(), stdin, append(args, "--kubeconfig", u.kubeconfig)...)
	if strings.Contains(o.stdout+o.stderr, "sesame") {
		u.t.Errorf("the output of %v holds the API key", args)
	}
	return o
}

func (u *user) succeeds(stdin string, args ...string) outcome {
	u.t.Helper()
	o := u.types(stdin, args...)
	u.Expect(o.code).To(Equal(0), "%v: %s", args, o.stderr)
	return o
}

func (u *user) gets(obj client.Object, namespace, name string) error {
	return u.client.Get(u.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
}

// TestJourney runs the commands of the README against a real API server without controllers.
func TestJourney(t *testing.T) {
	u := newUser(t)
	registry := releasetest.Start(t)
	release := registry.PushRelease(t, releaseinfo.Payload{
		Version: "1.36.3", Distribution: releaseinfo.Kubernetes, Components: map[string]string{"etcd": "registry.example/etcd:1"},
	})
	ca := filepath.Join(t.TempDir(), "ca.crt")
	u.Expect(os.WriteFile(ca, registry.CA, 0o600)).To(Succeed())
	u.readyNode("10.0.0.9")

	install := []string{
		"install", "--hypershift-image", "registry.example/hypershift:1", "--maas-capi-provider-image", "registry.example/provider:1",
		"--allowed-registries", "*", "--additional-trust-bundle", ca, "--wait-until-crds-established",
	}
	u.succeeds("", install...)
	deployment := &appsv1.Deployment{}
	u.Expect(u.gets(deployment, "hypershift", "operator")).To(Succeed())
	u.Expect(deployment.Spec.Template.Spec.Containers[0].Env).To(ContainElements(
		corev1.EnvVar{Name: "IMAGE_MAAS_CAPI_PROVIDER", Value: "registry.example/provider:1"},
		corev1.EnvVar{Name: "SSL_CERT_DIR", Value: "/etc/ssl/certs:/etc/hypershift/trust"}))
	u.succeeds("", install...)
	again := &appsv1.Deployment{}
	u.Expect(u.gets(again, "hypershift", "operator")).To(Succeed())
	u.Expect(again.ResourceVersion).To(Equal(deployment.ResourceVersion), "a second install changes nothing")

	u.hosts(release, ca)
}

// hosts creates a cluster and its pools, collects its data and destroys it.
func (u *user) hosts(release, ca string) {
	u.t.Helper()
	create := []string{
		"create", "cluster", "maas", "--name", "demo", "--node-pool-replicas", "2", "--release-image", release, "--additional-trust-bundle", ca, "--skip-preflight",
		"--maas-endpoint", "https://maas.example:5443/MAAS", "--maas-api-key-file", "-", "--generate-ssh", "--min-cpu", "2", "--tags", "fast",
	}
	u.succeeds(apiKey+"\n", create...)
	hc := &hyperv1.HostedCluster{}
	u.Expect(u.gets(hc, "clusters", "demo")).To(Succeed())
	u.Expect(hc.Spec.Networking.NetworkType).To(Equal(hyperv1.OVNKubernetes), "the payload brings the network")
	u.Expect(hc.Spec.Networking.AllocateNodeCIDRs).To(BeNil())
	u.Expect(hc.Spec.Services).To(HaveEach(HaveField("ServicePublishingStrategy.NodePort.Address", "10.0.0.9")))
	u.Expect(hc.Spec.Platform.MAAS.IdentityRef.Name).To(Equal("demo-maas-credentials"))
	credentials := &corev1.Secret{}
	u.Expect(u.gets(credentials, "clusters", "demo-maas-credentials")).To(Succeed())
	u.Expect(string(credentials.Data["MAAS_API_KEY"])).To(Equal(apiKey))
	u.Expect(credentials.Labels).To(HaveKeyWithValue(hyperv1.SafeToDeleteWithClusterLabel, "true"))
	pool := &hyperv1.NodePool{}
	u.Expect(u.gets(pool, "clusters", "demo")).To(Succeed())
	u.Expect(pool.Spec.Management.UpgradeType).To(Equal(hyperv1.UpgradeTypeReplace))
	u.Expect(pool.Spec.Platform.MAAS.Tags).To(ConsistOf(hyperv1.MAASTag("fast")))

	o := u.types(apiKey, create...)
	u.Expect(o.code).To(Equal(1))
	u.Expect(o.stderr).To(ContainSubstring("exists already"))

	u.createPools()
	u.createsKubeconfig(hc)
	u.dumps()

	u.succeeds("", "destroy", "nodepool", "--name", "big", "--cluster-name", "demo")
	u.Expect(apierrors.IsNotFound(u.gets(&hyperv1.NodePool{}, "clusters", "big"))).To(BeTrue())
	u.succeeds("", "destroy", "cluster", "maas", "--name", "demo")
	u.Expect(apierrors.IsNotFound(u.gets(&hyperv1.HostedCluster{}, "clusters", "demo"))).To(BeTrue())
	u.leavesNothing()
	u.succeeds("", "destroy", "cluster", "maas", "--name", "demo")
}

func (u *user) createPools() {
	u.t.Helper()
	u.succeeds("", "create", "nodepool", "maas", "--name", "big", "--cluster-name", "demo", "--replicas", "1",
		"--min-cpu", "8", "--min-memory", "16384", "--zone", "z1", "--resource-pool", "blue", "--not-tags", "slow", "--deploy-timeout", "45m")
	pool := &hyperv1.NodePool{}
	u.Expect(u.gets(pool, "clusters", "big")).To(Succeed())
	u.Expect(pool.Spec.Platform.MAAS.DeployTimeout.Duration.String()).To(Equal("45m0s"))
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"maas", "--name", "big", "--cluster-name", "demo"}, 1, "exists already"},
		{[]string{"maas", "--name", "x", "--cluster-name", "other"}, 1, "no HostedCluster clusters/other"},
		{[]string{"none", "--name", "x", "--cluster-name", "demo"}, 2, "use: create nodepool maas"},
	} {
		o := u.types("", append([]string{"create", "nodepool"}, tt.args...)...)
		u.Expect(o.code).To(Equal(tt.code), o.stderr)
		u.Expect(o.stderr).To(ContainSubstring(tt.says))
	}
}

func (u *user) createsKubeconfig(hc *hyperv1.HostedCluster) {
	u.t.Helper()
	o := u.types("", "create", "kubeconfig", "--name", "demo")
	u.Expect(o.code).To(Equal(1))
	u.Expect(o.stderr).To(ContainSubstring("has no kubeconfig yet"))
	raw, err := os.ReadFile(u.kubeconfig)
	u.Expect(err).NotTo(HaveOccurred())
	u.serves(hc, raw)
	for _, args := range [][]string{{"--name", "demo"}, nil} {
		o = u.succeeds("", append([]string{"create", "kubeconfig"}, args...)...)
		config, err := clientcmd.Load([]byte(o.stdout))
		u.Expect(err).NotTo(HaveOccurred())
		u.Expect(config.CurrentContext).To(Equal("clusters-demo"))
		u.Expect(config.Contexts).To(HaveLen(1))
	}
}

// serves creates what the operators create for a running cluster: its control plane with a kubeconfig.
func (u *user) serves(hc *hyperv1.HostedCluster, kubeconfig []byte) {
	u.t.Helper()
	objects := kubetest.Hosted(client.ObjectKeyFromObject(hc), kubeconfig)
	hcp, secret := &hyperv1.HostedControlPlane{}, &corev1.Secret{}
	for _, obj := range objects {
		switch obj := obj.(type) {
		case *hyperv1.HostedControlPlane:
			hcp = obj
		case *corev1.Secret:
			secret = obj
		default:
			u.Expect(u.client.Create(u.t.Context(), obj)).To(Succeed())
		}
	}
	status := hcp.Status
	hcp.Spec = hyperv1.HostedControlPlaneSpec{
		ReleaseImage: hc.Spec.Release.Image, Platform: hc.Spec.Platform, Services: hc.Spec.Services, Etcd: hc.Spec.Etcd,
		InfraID: hc.Spec.InfraID, IssuerURL: "https://issuer.example", PullSecret: hc.Spec.PullSecret, SSHKey: hc.Spec.SSHKey,
	}
	u.Expect(u.client.Create(u.t.Context(), hcp)).To(Succeed())
	hcp.Status = status
	u.Expect(u.client.Status().Update(u.t.Context(), hcp)).To(Succeed())
	secret.OwnerReferences[0].UID = hcp.UID
	u.Expect(u.client.Create(u.t.Context(), secret)).To(Succeed())
	hc.Status.KubeConfig = &corev1.LocalObjectReference{Name: "demo-admin-kubeconfig"}
	u.Expect(u.client.Status().Update(u.t.Context(), hc)).To(Succeed())
}

// dumps collects the cluster; its kubeconfig points to the management cluster here.
func (u *user) dumps() {
	u.t.Helper()
	dir := u.t.TempDir()
	u.succeeds("", "dump", "cluster", "--name", "demo", "--artifact-dir", dir, "--dump-guest-cluster")
	archive, err := os.Open(filepath.Join(dir, "hypershift-dump.tar.gz"))
	u.Expect(err).NotTo(HaveOccurred())
	defer archive.Close()
	unpacked, err := gzip.NewReader(archive)
	u.Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for r := tar.NewReader(unpacked); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		u.Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(r)
		u.Expect(err).NotTo(HaveOccurred())
		files[header.Name] = string(text)
		for _, secret := range []string{apiKey, base64.StdEncoding.EncodeToString([]byte(apiKey))} {
			u.Expect(string(text)).NotTo(ContainSubstring(secret), header.Name)
		}
	}
	u.Expect(files).To(HaveKeyWithValue("namespaces/clusters/hypershift.openshift.io/hostedclusters.yaml", ContainSubstring("name: demo")))
	u.Expect(files).To(HaveKeyWithValue("namespaces/clusters/core/secrets.yaml", ContainSubstring("MAAS_API_KEY: redacted")))
	u.Expect(files).To(HaveKey("cluster-scoped-resources/core/nodes.yaml"))
	u.Expect(files).To(HaveKey("namespaces/hypershift/apps/deployments.yaml"))
	u.Expect(files).To(HaveKey("hostedcluster-demo/cluster-scoped-resources/core/nodes.yaml"))
}

func (u *user) leavesNothing() {
	u.t.Helper()
	var secrets corev1.SecretList
	u.Expect(u.client.List(u.t.Context(), &secrets, client.InNamespace("clusters"), client.HasLabels{hyperv1.AutoCreatedForInfraLabel})).To(Succeed())
	u.Expect(secrets.Items).To(BeEmpty())
	var configMaps corev1.ConfigMapList
	u.Expect(u.client.List(u.t.Context(), &configMaps, client.InNamespace("clusters"), client.HasLabels{hyperv1.AutoCreatedForInfraLabel})).To(Succeed())
	u.Expect(configMaps.Items).To(BeEmpty())
}

// readyNode creates a node of the management cluster.
func (u *user) readyNode(address string) {
	u.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "management"}}
	u.Expect(u.client.Create(u.t.Context(), node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	u.Expect(u.client.Status().Update(u.t.Context(), node)).To(Succeed())
}

func TestForeignClusterAPI(t *testing.T) {
	u := newUser(t)
	crd := func(version string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "machines.cluster.x-k8s.io", Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, test"}},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "cluster.x-k8s.io", Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "machines", Singular: "machine", Kind: "Machine", ListKind: "MachineList"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: version, Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
				}},
			},
		}
	}
	old := crd("v1beta1")
	u.Expect(u.client.Create(t.Context(), old)).To(Succeed())
	o := u.types("", "install", "--install-scope", "crds")
	u.Expect(o.code).To(Equal(1))
	u.Expect(o.stderr).To(ContainSubstring("upgrade that Cluster API"))
	u.Expect(apierrors.IsNotFound(u.gets(&apiextensionsv1.CustomResourceDefinition{}, "", "nodepools.hypershift.openshift.io"))).
		To(BeTrue(), "nothing is installed when something is in the way")

	u.Eventually(func() error {
		if err := u.gets(old, "", old.Name); err != nil {
			return err
		}
		upgraded := crd("v1beta2").Spec.Versions[0]
		upgraded.Storage = false
		old.Spec.Versions = append(old.Spec.Versions, upgraded)
		return u.client.Update(t.Context(), old)
	}).Should(Succeed())
	o = u.succeeds("", "install", "--install-scope", "crds", "--wait-until-crds-established", "--limit-crd-install", "none", "--exclude-etcd")
	u.Expect(o.stderr).To(ContainSubstring("machines.cluster.x-k8s.io belongs to another product"))
	u.Expect(u.gets(&apiextensionsv1.CustomResourceDefinition{}, "", "nodepools.hypershift.openshift.io")).To(Succeed())
	for _, name := range []string{"maasmachines.infrastructure.cluster.x-k8s.io", "hcpetcdbackups.hypershift.openshift.io"} {
		u.Expect(apierrors.IsNotFound(u.gets(&apiextensionsv1.CustomResourceDefinition{}, "", name))).To(BeTrue(), name)
	}
}

// TestUsage checks, without a cluster, that each usage error is named and ends with exit code 2.
func TestUsage(t *testing.T) {
	t.Setenv("MAAS_API_KEY", "")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	cluster := func(more ...string) []string {
		return append([]string{
			"create", "cluster", "maas", "--name", "demo", "--release-image", "registry.example/r:1", "--render",
			"--external-api-server-address", "10.0.0.1", "--maas-endpoint", "https://maas:5443/MAAS",
		}, more...)
	}
	withKey := func(more ...string) []string { return append(cluster("--maas-api-key-file", "-"), more...) }
	tests := []struct {
		name string
		args []string
		says string
	}{
		{"When the command is unknown", []string{"creat"}, `unknown command "creat"`},
		{"When the sub-command is unknown", []string{"create", "clusters"}, `unknown command "clusters"`},
		{"When the platform is unknown and flags follow", []string{"create", "cluster", "ibmcloud", "--name", "x"}, `unknown command "ibmcloud" for "hypershift create cluster"`},
		{"When the platform is missing", []string{"create", "cluster", "--name", "x"}, "hypershift create cluster needs a command before --name"},
		{"When no release image is named", []string{"release", "info"}, "name one release image"},
		{"When the outputs are unknown", []string{"install", "render", "--outputs", "x"}, "--outputs \"x\""},
		{"When the flag is unknown", []string{"version", "--nope"}, "unknown flag: --nope"},
		{"When the name is missing", []string{"create", "cluster", "maas"}, "--name is required"},
		{"When the name is not a DNS label", withKey("--name", "A_b"), "--name \"A_b\""},
		{"When the release image is missing", []string{"create", "cluster", "maas", "--name", "demo"}, "--release-image is required"},
		{"When the API key is missing", cluster(), "--maas-api-key-file"},
		{"When two API keys are set", withKey("--maas-api-key", apiKey), "set one of"},
		{"When the endpoint has no scheme", withKey("--maas-endpoint", "maas"), "--maas-endpoint is not an http or https URL"},
		{"When the endpoint has a password", withKey("--maas-endpoint", "http://u:p@maas/MAAS"), "without user"},
		{"When an existing Secret and an endpoint are both set", withKey("--credentials-secret", "x"), "leave out"},
		{"When a file is missing", withKey("--maas-ca-bundle", "/does/not/exist"), "--maas-ca-bundle"},
		{"When the architecture is unknown", withKey("--arch", "mips"), "use one of amd64"},
		{"When the networks overlap", withKey("--service-cidr", "10.132.0.0/16"), "overlaps"},
		{"When a network is not a CIDR", withKey("--cluster-cidr", "x"), "--cluster-cidr"},
		{"When a tag is both required and excluded", withKey("--tags", "a", "--not-tags", "a"), "no machine can have both"},
		{"When zone and failure domain differ", withKey("--zone", "a", "--failure-domain", "b"), "same thing"},
		{"When the user data format is unknown", withKey("--user-data-format", "cloud-config"), "use Ignition or CloudConfig"},
		{"When LXD flags have no effect", withKey("--lxd-project", "a"), "--lxd-enabled"},
		{"When a static address has no CIDR", withKey("--static-ip", "10.0.0.1"), "--static-ip-cidr"},
		{"When the wipe flags conflict", withKey("--ephemeral", "--disk-wipe"), "--ephemeral"},
		{"When --wait is set with --render", withKey("--wait"), "--wait needs a cluster"},
		{"When --wait is set without nodes", append(withKey("--wait"), "--render=false"), "--node-pool-replicas"},
		{"When the pause is not a date", withKey("--pausedUntil", "tomorrow"), "--pausedUntil"},
		{"When node CIDRs are allocated for an unsupported network type", withKey("--network-type", "Calico", "--allocate-node-cidrs"), "--network-type Other"},
		{"When two SSH keys are set", withKey("--ssh-key", "x", "--generate-ssh"), "set one of"},
		{"When the etcd storage size is not a quantity", withKey("--etcd-storage-size", "big"), "--etcd-storage-size"},
		{"When the NodePool name is missing", []string{"create", "nodepool", "maas"}, "--name and --cluster-name are required"},
		{"When the replicas are negative", []string{"create", "nodepool", "maas", "--name", "a", "--cluster-name", "b", "--replicas", "-1"}, "--replicas"},
		{"When the cluster to destroy is not named", []string{"destroy", "cluster", "maas"}, "--name is required"},
		{"When the NodePool to destroy is not named", []string{"destroy", "nodepool"}, "--name is required"},
		{"When the dump has no target directory", []string{"dump", "cluster", "--name", "a"}, "--artifact-dir"},
		{"When two images are set", []string{"install", "--image-refs", "a", "--hypershift-image", "b"}, "set one of"},
		{"When no image is set", []string{"install"}, "--hypershift-image or $HYPERSHIFT_IMAGE"},
		{"When no image is set for render", []string{"install", "render"}, "--hypershift-image or $HYPERSHIFT_IMAGE"},
		{"When the pull policy is unknown", []string{"install", "--image-pull-policy", "Sometimes"}, "--image-pull-policy"},
		{"When the platform is unknown", []string{"install", "--limit-crd-install", "azure"}, "--limit-crd-install"},
		{"When the certificate rotation scale is too long", []string{"install", "--cert-rotation-scale", "25h"}, "at most 24h"},
		{"When it waits for an operator that is not installed", []string{"install", "--development", "--wait-until-available"}, "--wait-until-available"},
		{"When an override is malformed", []string{"install", "--registry-overrides", "a"}, "source=destination"},
		{"When the format is unknown", []string{"install", "render", "--format", "xml"}, "--format"},
		{"When the release has no version", []string{"release", "build"}, "--version"},
		{"When the release has no target", []string{"release", "build", "--version", "1.36.3"}, "--to is required"},
		{"When the release has no components", []string{"release", "build", "--version", "1.36.3", "--to", "r/a:1"}, "--component is required"},
		{"When the distribution is unknown", []string{"release", "build", "--version", "1.36.3", "--to", "r/a:1", "--component", "a=b", "--distribution", "k3s"}, "--distribution"},
		{"When a component is not a valid pull spec", []string{"release", "build", "--version", "1.36.3", "--to", "r/a:1", "--component", "a=B C"}, "--component a"},
		{"When the output format is unknown", []string{"version", "--client-only", "-o", "xml"}, "--output"},
		{"When the output format of a check is unknown", []string{"doctor", "-o", "yaml"}, `--output "yaml": use json`},
		{"When a check gets no API key", []string{"doctor", "--maas-endpoint", "https://maas/MAAS"}, "--maas-api-key-file"},
	}
	for _, tt := range tests {
		t.Run(tt.name+" it should say so and exit with 2", func(t *testing.T) {
			g := NewWithT(t)
			o := hypershift(t.Context(), apiKey, tt.args...)
			g.Expect(o.stderr).To(ContainSubstring(tt.says))
			g.Expect(o.code).To(Equal(2))
			g.Expect(o.stdout).To(BeEmpty())
			g.Expect(o.stderr).NotTo(ContainSubstring("sesame"))
		})
	}
}

func TestReleaseCommands(t *testing.T) {
	g := NewWithT(t)
	registry := releasetest.Start(t)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	g.Expect(os.WriteFile(ca, registry.CA, 0o600)).To(Succeed())
	o := hypershift(t.Context(), "", "release", "build", "--version", "1.36.3", "--to", registry.Host+"/release:1.36.3", "--ca-file", ca,
		"--component", "etcd=registry.example/etcd:1", "--component", "node=registry.example/node:1", "--component-version", "kubernetes=1.36.3")
	g.Expect(o.code).To(Equal(0), o.stderr)
	g.Expect(o.stdout).To(MatchRegexp(`^` + registry.Host + `/release@sha256:[0-9a-f]{64}\n$`))
	spec := strings.TrimSpace(o.stdout)

	o = hypershift(t.Context(), "", "release", "info", spec, "--ca-file", ca)
	g.Expect(o.code).To(Equal(0), o.stderr)
	g.Expect(o.stdout).To(MatchRegexp(`(?m)^Distribution +Kubernetes$`))
	g.Expect(o.stdout).To(MatchRegexp(`(?m)^node +registry.example/node:1$`))
	o = hypershift(t.Context(), "", "release", "info", spec, "--ca-file", ca, "-o", "json")
	g.Expect(o.stdout).To(ContainSubstring(`"version": "1.36.3"`))

	o = hypershift(t.Context(), "", "release", "info", registry.Host+"/release:2", "--ca-file", ca)
	g.Expect(o.code).To(Equal(1))
	g.Expect(o.stderr).To(ContainSubstring("check the repository, tag or digest"))
}

func TestVersion(t *testing.T) {
	g := NewWithT(t)
	o := hypershift(t.Context(), "", "version", "--client-only")
	g.Expect(o).To(Equal(outcome{0, "Client Version: unknown\n", ""}))
	o = hypershift(t.Context(), "", "version", "--kubeconfig", "/does/not/exist", "-o", "json")
	g.Expect(o.code).To(Equal(0), "a version is known without a cluster")
	g.Expect(o.stdout).To(ContainSubstring("serverError"))
}

func TestInterrupted(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := hypershift(ctx, "", "release", "info", "registry.invalid/a:1")
	g.Expect(o.code).To(Equal(1))
	g.Expect(o.stderr).To(ContainSubstring("interrupted"))
}

func TestHCP(t *testing.T) {
	g := NewWithT(t)
	cmd := root.HCP()
	cmd.SetOut(io.Discard)
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	g.Expect(names).To(ConsistOf("capacity", "completion", "console", "create", "describe", "destroy", "get", "help", "logs",
		"scale", "ssh", "upgrade", "version", "wait"))
	create, _, err := cmd.Find([]string{"create", "cluster", "maas"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(create.Flag("control-plane-availability-policy").DefValue).To(Equal("HighlyAvailable"))
	g.Expect(create.Flag("control-plane-operator-image").Hidden).To(BeTrue())
}
