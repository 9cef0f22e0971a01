// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/management"
)

// completed returns the completed options of a command line. It adds an image if the command line names none.
func completed(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	t.Setenv(imageEnv, "registry.example/hypershift:1")
	o := &Options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, o.complete(flags)
}

func installation(t *testing.T, args ...string) *Options {
	t.Helper()
	o, err := completed(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// the returns the only object of a kind and name in an installation.
func the[T client.Object](t *testing.T, o *Options, name string) T {
	t.Helper()
	for _, obj := range o.resources() {
		if typed, ok := obj.(T); ok && obj.GetName() == name {
			return typed
		}
	}
	var none T
	t.Fatalf("there is no %T %s", none, name)
	return none
}

// described lists the operator container's arguments, and its environment as NAME=value.
func described(t *testing.T, o *Options) []string {
	t.Helper()
	c := the[*appsv1.Deployment](t, o, operatorName).Spec.Template.Spec.Containers[0]
	lines := slices.Clone(c.Args)
	for _, env := range c.Env {
		lines = append(lines, env.Name+"="+env.Value)
	}
	return lines
}

// TestOperatorFlags checks what each flag changes in the operator, and that it changes nothing else.
func TestOperatorFlags(t *testing.T) {
	for _, tt := range []struct {
		name        string
		args        []string
		adds, drops []string
	}{
		{name: "When registry prefixes are overridden, it should pass the overrides to the operator", args: []string{"--registry-overrides=a=b,c=d"}, adds: []string{"--registry-overrides=a=b,c=d"}},
		{name: "When node addresses are refused for tenants, it should pass the flag to the operator",
			args: []string{"--refuse-node-addresses"}, adds: []string{"--refuse-node-addresses"}},
		{name: "When CIDRs are blocked for hosted Pods, it should pass them to the operator", args: []string{"--hcp-egress-block-cidrs=10.0.0.0/8"}, adds: []string{"--hcp-egress-block-cidrs=10.0.0.0/8"}},
		{name: "When DNS servers are set for hosted Pods, it should pass them to the operator", args: []string{"--hcp-egress-dns-cidrs=192.0.2.53/32"}, adds: []string{"--hcp-egress-dns-cidrs=192.0.2.53/32"}},
		{name: "When one control-plane-operator image is set for all clusters, it should pass the image to the operator", args: []string{"--control-plane-operator-image=r/cpo:1"}, adds: []string{"--control-plane-operator-image=r/cpo:1"}},
		{name: "When a default release is recorded, it should pass the release to the operator", args: []string{"--default-release-image=registry.example/release:1"},
			adds: []string{"--default-release-image=registry.example/release:1"}},
		{name: "When debug output is enabled for control planes, it should pass the flag to the operator", args: []string{"--enable-ci-debug-output"}, adds: []string{"--enable-ci-debug-output"}},
		{name: "When the loosest Pod Security level is set, it should pass the level to the operator", args: []string{"--loosest-pod-security-level=privileged"}, adds: []string{"--loosest-pod-security-level=privileged"}},
		{name: "When fewer control planes may change at the same time, it should pass the number to the operator", args: []string{"--max-control-plane-rollouts=2"}, adds: []string{"--max-control-plane-rollouts=2"}},
		{name: "When the monitoring CRDs are left out, it should not change the operator", args: []string{"--install-monitoring-crds=false"}},
		{name: "When OpenShift scrapes control planes, it should enable cluster monitoring in the operator", args: []string{"--platform-monitoring=All"}, adds: []string{"--enable-ocp-cluster-monitoring"}},
		{name: "When OpenShift scrapes only the operator, it should not enable cluster monitoring of control planes", args: []string{"--platform-monitoring=OperatorOnly"}},
		{name: "When the defaulting webhook is disabled, the operator should not serve it", args: []string{"--enable-defaulting-webhook=false"}, drops: []string{"--enable-defaulting-webhook"}},
		{
			name: "When another metrics set is chosen, it should pass the set to the operator", args: []string{"--metrics-set=SRE"},
			adds: []string{"METRICS_SET=SRE"}, drops: []string{"METRICS_SET=Telemetry"},
		},
		{
			name: "When the certificate rotation scale is shortened, it should pass the scale to the operator", args: []string{"--cert-rotation-scale=30m"},
			adds: []string{"CERT_ROTATION_SCALE=30m0s"}, drops: []string{"CERT_ROTATION_SCALE=24h0m0s"},
		},
		{name: "When only some platforms are installed, it should pass their names to the operator", args: []string{"--limit-crd-install=MAAS,none"}, adds: []string{"PLATFORMS_INSTALLED=maas,none"}},
		{
			name: "When environment variables are added, it should append them in sorted order", args: []string{"--additional-operator-env-vars=ZED=1,ALPHA=2"},
			adds: []string{"ALPHA=2", "ZED=1"},
		},
		{
			name: "When provider images are set, it should pass each in its own variable", args: []string{"--maas-capi-provider-image=r/maas:1", "--aws-capi-provider-image=r/aws:1"},
			adds: []string{"IMAGE_AWS_CAPI_PROVIDER=r/aws:1", "IMAGE_MAAS_CAPI_PROVIDER=r/maas:1"},
		},
		{
			name: "When the operator image is in another registry, it should allow that registry for clusters", args: []string{"--hypershift-image=mirror.example/hypershift:1"},
			adds: []string{"--allowed-registries=mirror.example,quay.io/openshift-release-dev,quay.io/okd"}, drops: []string{"--allowed-registries=registry.example,quay.io/openshift-release-dev,quay.io/okd"},
		},
		{name: "When only the image, replicas or namespace change, it should keep the operator's arguments", args: []string{"--hypershift-image=registry.example/other:2", "--image-pull-policy=Always", "--replicas=3", "--namespace=other", "--exclude-etcd"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plain, changed := described(t, installation(t)), described(t, installation(t, tt.args...))
			missing := func(from, in []string) []string {
				return slices.DeleteFunc(slices.Clone(from), func(line string) bool { return slices.Contains(in, line) })
			}
			if diff := cmp.Diff(tt.adds, missing(changed, plain), equateEmpty); diff != "" {
				t.Errorf("what it adds (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.drops, missing(plain, changed), equateEmpty); diff != "" {
				t.Errorf("what it drops (-want +got):\n%s", diff)
			}
		})
	}
}

var equateEmpty = cmp.Transformer("length", func(lines []string) string { return strings.Join(lines, "\n") })

// TestImagesOfAList checks which images of --image-refs override the operator's defaults.
func TestImagesOfAList(t *testing.T) {
	var tags []string
	for _, name := range []string{"hypershift-operator", "apiserver-network-proxy", "cluster-api", "cluster-api-provider-maas", "cluster-api-provider-aws", "something-else"} {
		tags = append(tags, "{name: "+name+", from: {kind: DockerImage, name: 'r/"+name+":1'}}")
	}
	file := filepath.Join(t.TempDir(), "images.yaml")
	g := NewWithT(t)
	g.Expect(os.WriteFile(file, []byte("spec: {tags: ["+strings.Join(tags, ", ")+"]}"), 0o600)).To(Succeed())
	o := installation(t, "--image-refs", file)
	g.Expect(cmp.Diff(map[string]string{
		"IMAGE_KONNECTIVITY": "r/apiserver-network-proxy:1", "IMAGE_CLUSTER_API": "r/cluster-api:1",
		"IMAGE_MAAS_CAPI_PROVIDER": "r/cluster-api-provider-maas:1", "IMAGE_AWS_CAPI_PROVIDER": "r/cluster-api-provider-aws:1",
	}, o.images)).To(BeEmpty())
	pod := the[*appsv1.Deployment](t, o, operatorName).Spec.Template.Spec
	g.Expect(pod.Containers[0].Image).To(Equal("r/hypershift-operator:1"))
	g.Expect(pod.InitContainers[0].Image).To(Equal("r/hypershift-operator:1"), "what prepares the operator is the same program")
}

// refusedParts is a platform part whose Complete fails.
type refusedParts struct{ err error }

func (refusedParts) AddFlags(*pflag.FlagSet)              {}
func (p refusedParts) Complete(string) (Addition, error)  { return Addition{}, p.err }
func (p addedParts) AddFlags(*pflag.FlagSet)              {}
func (p addedParts) Complete(ns string) (Addition, error) { return p.of(ns), nil }
func withParts(o *Options, parts ...Part) (*Options, error) {
	o.parts = parts
	return o, o.completeParts()
}

// addedParts is a platform part with an Addition.
type addedParts struct {
	of func(namespace string) Addition
}

func TestParts(t *testing.T) {
	secret := func(name string) Part {
		return addedParts{func(namespace string) Addition {
			made := &corev1.Secret{}
			made.Namespace, made.Name = namespace, name
			return Addition{Args: []string{"--" + name}, Secrets: []SecretFiles{{Name: name, Dir: "/etc/" + name}}, Objects: []client.Object{made}}
		}}
	}
	t.Run("When platforms add arguments and Secrets, the operator should get all of them and mount each Secret", func(t *testing.T) {
		g := NewWithT(t)
		o, err := withParts(installation(t, "--namespace=other"), secret("one"), secret("two"))
		g.Expect(err).NotTo(HaveOccurred())
		deployment := the[*appsv1.Deployment](t, o, operatorName)
		pod := deployment.Spec.Template.Spec
		g.Expect(pod.Containers[0].Args).To(ContainElements("--one", "--two"))
		g.Expect(pod.InitContainers[0].Args).To(Equal([]string{"init"}))
		for _, name := range []string{"one", "two"} {
			g.Expect(pod.Volumes).To(ContainElement(And(HaveField("Name", name), HaveField("VolumeSource.Secret.SecretName", name))))
			g.Expect(pod.Containers[0].VolumeMounts).To(ContainElement(corev1.VolumeMount{Name: name, MountPath: "/etc/" + name, ReadOnly: true}))
			g.Expect(the[*corev1.Secret](t, o, name).Namespace).To(Equal("other"))
		}
		at := func(name string) int {
			return slices.IndexFunc(o.resources(), func(obj client.Object) bool { return obj.GetName() == name && obj.GetNamespace() == "other" })
		}
		g.Expect(at("two")).To(BeNumerically("<", slices.IndexFunc(o.resources(), func(obj client.Object) bool { _, is := obj.(*appsv1.Deployment); return is })))
	})
	t.Run("When the parts are completed again, it should add nothing twice", func(t *testing.T) {
		g := NewWithT(t)
		o, err := withParts(installation(t), secret("one"))
		g.Expect(errors.Join(err, o.completeParts())).To(Succeed())
		g.Expect(o.addition.Args).To(Equal([]string{"--one"}))
		g.Expect(o.addition.Objects).To(HaveLen(1))
	})
	t.Run("When a platform's flag is invalid, it should return the error", func(t *testing.T) {
		_, err := withParts(installation(t), secret("one"), refusedParts{errors.New("--aws-flag is wrong")})
		NewWithT(t).Expect(err).To(MatchError("--aws-flag is wrong"))
	})
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		says       string // Empty if the flags are valid.
	}{
		{"the namespace is not a DNS label", "--namespace=A_b", `--namespace "A_b"`},
		{"there is no namespace", "--namespace=", `--namespace ""`},
		{"both an image and a list of images are set", "--hypershift-image=a --image-refs=b", "set one of --hypershift-image and --image-refs"},
		{"the rotation scale is zero", "--cert-rotation-scale=0s", "must be more than 0 and at most 24h"},
		{"the rotation scale is a day", "--cert-rotation-scale=24h", ""},
		{"the rotation scale is longer than a day", "--cert-rotation-scale=24h1ns", "must be more than 0 and at most 24h"},
		{"the rotation scale is negative", "--cert-rotation-scale=-1h", "must be more than 0 and at most 24h"},
		{"there is to be no pod", "--replicas=0", "--replicas must be 1 or more; use --development"},
		{"there is to be one pod", "--replicas=1", ""},
		{"a registry override has no destination", "--registry-overrides=a", "--registry-overrides: "},
		{"a CIDR is invalid", "--hcp-egress-block-cidrs=10.0.0.0/99", "--hcp-egress-block-cidrs: "},
		{"a range of DNS servers is invalid", "--hcp-egress-dns-cidrs=dns.example", "--hcp-egress-dns-cidrs: "},
		{"the platform is unknown", "--limit-crd-install=maas,azure", `--limit-crd-install "azure": use one of maas`},
		{"the API is unknown", "--management-apis=example.com", `--management-apis "example.com": use one of config.openshift.io`},
		{"the pull policy is unknown", "--image-pull-policy=always", `--image-pull-policy "always": use one of Always, IfNotPresent, Never`},
		{"the metrics set is unknown", "--metrics-set=Everything", `--metrics-set "Everything": use one of Telemetry, SRE, All`},
		{"what is monitored is unknown", "--platform-monitoring=Some", `--platform-monitoring "Some": use one of None, OperatorOnly, All`},
		{"what is installed is unknown", "--install-scope=some", `--install-scope "some": use one of all, crds, resources`},
		{"a virtual IP is a host name", "--api-virtual-ip=api.example", `--api-virtual-ip "api.example": use addresses of the nodes' subnet`},
		{"a virtual IP has a zone", "--api-virtual-ip=fd00::1%eth0", `--api-virtual-ip "fd00::1%eth0"`},
		{"a virtual IP is link-local", "--api-virtual-ip=10.0.0.5,fe80::1", `--api-virtual-ip "fe80::1"`},
		{"an allowed registry is an image reference", "--allowed-registries=quay.example@sha256", "--allowed-registries"},
		{"a virtual IP is set without an operator Pod", "--api-virtual-ip=10.0.0.5 --development", "--api-virtual-ip runs pods of the operator's image, which --development leaves out"},
		{"nodes wait for the least time", "--api-virtual-ip=10.0.0.5 --api-virtual-ip-lease-duration=6s", ""},
		{"nodes wait for less", "--api-virtual-ip=10.0.0.5 --api-virtual-ip-lease-duration=5999ms", "--api-virtual-ip-lease-duration must be 6s or more"},
	} {
		t.Run("When "+tt.name+" it should be judged so", func(t *testing.T) {
			g := NewWithT(t)
			_, err := completed(t, strings.Fields(tt.args)...)
			if tt.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(err.Error()).NotTo(ContainSubstring("\n"), "a refusal is one sentence")
		})
	}
	for _, flag := range []string{"interface=eth0", "node-selector=a=b", "lease-duration=9s", "health-check=http://127.0.0.1"} {
		t.Run("When "+flag+" says how addresses are held and there are none it should be refused", func(t *testing.T) {
			name, _, _ := strings.Cut(flag, "=")
			_, err := completed(t, "--api-virtual-ip-"+flag)
			NewWithT(t).Expect(err).To(MatchError("--api-virtual-ip-" + name + " needs --api-virtual-ip"))
		})
	}
}

// TestMissingFiles checks that the error names the flag whose file cannot be read.
func TestMissingFiles(t *testing.T) {
	for _, flag := range []string{"pull-secret", "additional-trust-bundle", "image-refs"} {
		t.Run("When the file of --"+flag+" is missing it should name both", func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "missing")
			_, err := completed(t, "--"+flag, file)
			NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("--"+flag+": "), ContainSubstring(file))))
		})
	}
}

// TestPullSecret checks that the credentials of the file reach the pods that use them for pulls.
func TestPullSecret(t *testing.T) {
	g := NewWithT(t)
	const secret = `{"auths":{"quay.example":{"username":"u","password":"sesame"}}}`
	file := filepath.Join(t.TempDir(), "pull.json")
	g.Expect(os.WriteFile(file, []byte(secret), 0o600)).To(Succeed())
	o := installation(t, "--pull-secret", file, "--api-virtual-ip", "10.0.0.5")
	namespaces := map[string]bool{}
	for _, obj := range o.resources() {
		switch obj := obj.(type) {
		case *corev1.Secret:
			g.Expect(obj.Type).To(Equal(corev1.SecretTypeDockerConfigJson))
			g.Expect(string(obj.Data[corev1.DockerConfigJsonKey])).To(Equal(secret))
			namespaces[obj.Namespace] = true
		case *corev1.ServiceAccount:
			g.Expect(obj.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: pullSecretName}}), obj.Namespace)
		}
	}
	g.Expect(namespaces).To(Equal(map[string]bool{"hypershift": true, "hypershift-virtual-ip": true}), "a pod pulls with a Secret of its own namespace")
	for _, obj := range installation(t, "--api-virtual-ip", "10.0.0.5").resources() {
		if account, ok := obj.(*corev1.ServiceAccount); ok {
			g.Expect(account.ImagePullSecrets).To(BeEmpty(), "there is no Secret that it could name")
		}
	}
}

// TestTrust checks that CAs from the file and from OpenShift reach the paths from which the operator reads them.
func TestTrust(t *testing.T) {
	ca := filepath.Join("..", "root", "testdata", "ca.pem")
	for _, tt := range []struct {
		name     string
		args     []string
		folders  string
		optional map[string]bool
	}{
		{"When no CA bundle is set, the operator should trust only the CAs of its image", nil, "", map[string]bool{}},
		{
			"When a CA bundle is set, the operator should trust it in addition to the system CAs", []string{"--additional-trust-bundle", ca},
			"/etc/ssl/certs:/etc/hypershift/trust", map[string]bool{trustBundleName: false},
		},
		{
			"When the management cluster has a CA bundle too, its ConfigMap should be optional", []string{"--additional-trust-bundle", ca, "--management-apis", management.Configuration},
			"/etc/ssl/certs:/etc/hypershift/trust:/etc/hypershift/platform-trust", map[string]bool{trustBundleName: false, platformTrustName: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			o := installation(t, tt.args...)
			pod := the[*appsv1.Deployment](t, o, operatorName).Spec.Template.Spec
			optional := map[string]bool{}
			for _, volume := range pod.Volumes {
				optional[volume.ConfigMap.Name] = volume.ConfigMap.Optional != nil && *volume.ConfigMap.Optional
				made := the[*corev1.ConfigMap](t, o, volume.ConfigMap.Name)
				if volume.ConfigMap.Name == trustBundleName {
					g.Expect(made.Data).To(HaveKeyWithValue("ca-bundle.crt", ContainSubstring("BEGIN CERTIFICATE")))
				} else {
					g.Expect(made.Labels).To(HaveKeyWithValue("config.openshift.io/inject-trusted-cabundle", "true"), "OpenShift fills it in")
				}
			}
			g.Expect(optional).To(Equal(tt.optional))
			for _, container := range append(pod.InitContainers, pod.Containers...) {
				g.Expect(container.VolumeMounts).To(HaveLen(len(tt.optional)), container.Name)
				found := slices.IndexFunc(container.Env, func(env corev1.EnvVar) bool { return env.Name == "SSL_CERT_DIR" })
				if tt.folders == "" {
					g.Expect(found).To(Equal(-1), container.Name)
					continue
				}
				g.Expect(container.Env[found].Value).To(Equal(tt.folders), container.Name)
				for _, mount := range container.VolumeMounts {
					g.Expect(strings.Split(tt.folders, ":")).To(ContainElement(mount.MountPath))
				}
			}
		})
	}
}
