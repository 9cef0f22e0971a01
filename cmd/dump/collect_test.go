// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube/kubetest"
)

func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: at(namespace, name), Data: map[string][]byte{"kubeconfig": []byte(value)}}
}

func pod(namespace, name string, restarts int32) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: at(namespace, name)}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "prepare"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: restarts}}
	return p
}

// sick returns a management cluster with a hosted cluster, and objects that must not be in a dump of it.
func sick(t *testing.T, more ...client.Object) *kubetest.Server {
	t.Helper()
	hc := &hyperv1.HostedCluster{ObjectMeta: at("clusters", "demo.v1")}
	s := kubetest.Start(t, append([]client.Object{
		hc, secret("clusters", "api-key", "sesame"), pod("clusters-demo-v1", "etcd-0", 2), pod("hypershift", "operator-x", 0), secret("others", "theirs", "sesame"),
		&corev1.ConfigMap{ObjectMeta: at("others", "theirs")}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
	}, more...)...)
	s.Logs["clusters-demo-v1/etcd-0/main"] = "it runs"
	s.Logs["clusters-demo-v1/etcd-0/main/previous"] = "it crashed"
	s.Logs["clusters-demo-v1/etcd-0/prepare"] = "prepared"
	s.Logs["hypershift/operator-x/main"] = "reconciling"
	return s
}

// dumps runs the command and returns what it wrote, by path.
func dumps(t *testing.T, s *kubetest.Server, dir string, args ...string) (files map[string]string, said string, err error) {
	t.Helper()
	cmd := NewCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, stderr bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"--name=demo.v1", "--artifact-dir", dir, "--kubeconfig", s.Kubeconfig, "--archive-dump=false"}, args...))
	err = cmd.ExecuteContext(t.Context())
	files = map[string]string{}
	root := filepath.Join(dir, "hypershift-dump")
	walked := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s can be read by others: %v", path, info.Mode())
		}
		name, _ := filepath.Rel(root, path)
		files[name] = string(text)
		return err
	})
	if walked != nil && !errors.Is(walked, os.ErrNotExist) {
		t.Fatal(walked)
	}
	return files, stderr.String(), err
}

func TestCollect(t *testing.T) {
	s := sick(t)
	files, said, err := dumps(t, s, t.TempDir())
	t.Run("When a cluster is dumped, the dump should contain all its objects, logs and previous logs", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		const hosted = "namespaces/clusters-demo-v1/"
		g.Expect(files).To(HaveKeyWithValue("namespaces/clusters/hypershift.openshift.io/hostedclusters.yaml", ContainSubstring("name: demo.v1")))
		g.Expect(files).To(HaveKeyWithValue(hosted+"core/pods.yaml", ContainSubstring("name: etcd-0")))
		g.Expect(files).To(HaveKeyWithValue(hosted+"pods/etcd-0/main.log", "it runs"))
		g.Expect(files).To(HaveKeyWithValue(hosted+"pods/etcd-0/main.previous.log", "it crashed"))
		g.Expect(files).To(HaveKeyWithValue(hosted+"pods/etcd-0/prepare.log", "prepared"))
		g.Expect(files).NotTo(HaveKey(hosted + "pods/etcd-0/prepare.previous.log"))
		g.Expect(files).To(HaveKeyWithValue("namespaces/hypershift/pods/operator-x/main.log", "reconciling"))
		g.Expect(files).To(HaveKeyWithValue("cluster-scoped-resources/core/nodes.yaml", ContainSubstring("name: node")))
	})
	t.Run("When there are Secrets, the dump should contain their keys but not their values", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(files).To(HaveKeyWithValue("namespaces/clusters/core/secrets.yaml", ContainSubstring("kubeconfig: redacted, 8 characters")))
		for name, text := range files {
			g.Expect(text).NotTo(ContainSubstring("c2VzYW1l"), name)
		}
	})
	t.Run("When there are other namespaces, the dump should not contain them", func(t *testing.T) {
		for name := range files {
			NewWithT(t).Expect(name).NotTo(HavePrefix("namespaces/others"))
		}
	})
	t.Run("When a log is missing, it should continue and report that in the dump", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(files).To(HaveKeyWithValue("not-collected.txt", And(ContainSubstring("read the log of hypershift/operator-x, container prepare"), Not(ContainSubstring("etcd-0")))))
	})
	t.Run("When a cluster is dumped, it should change nothing", func(t *testing.T) {
		NewWithT(t).Expect(s.Writes()).To(BeEmpty())
		NewWithT(t).Expect(said).To(ContainSubstring("written to "))
	})
}

func TestCollectGuest(t *testing.T) {
	guest := func(t *testing.T) *kubetest.Server {
		t.Helper()
		namespace := func(name string) client.Object { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}} }
		return kubetest.Start(t, namespace("kube-system"), namespace("openshift-dns"), namespace("shop"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}},
			&corev1.ConfigMap{ObjectMeta: at("kube-system", "ours")}, &corev1.ConfigMap{ObjectMeta: at("shop", "customers")}, secret("kube-system", "token", "sesame"))
	}
	known := func(t *testing.T, text []byte) *kubetest.Server {
		t.Helper()
		return sick(t, kubetest.Hosted(client.ObjectKey{Namespace: "clusters", Name: "demo.v1"}, text)...)
	}
	const in = "hostedcluster-demo.v1/"
	t.Run("When the guest is dumped, the dump should contain nodes and system namespaces, but no user data", func(t *testing.T) {
		g := NewWithT(t)
		files, _, err := dumps(t, known(t, guest(t).KubeconfigText(t)), t.TempDir(), "--dump-guest-cluster")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).To(HaveKeyWithValue(in+"cluster-scoped-resources/core/nodes.yaml", ContainSubstring("name: worker")))
		g.Expect(files).To(HaveKey(in + "namespaces/kube-system/core/configmaps.yaml"))
		g.Expect(files).NotTo(HaveKey(in + "namespaces/shop/core/configmaps.yaml"))
		for name, text := range files {
			g.Expect(text).NotTo(Or(ContainSubstring("c2VzYW1l"), ContainSubstring("customers")), name)
		}
	})
	t.Run("When all guest namespaces are requested, the dump should contain user namespaces too", func(t *testing.T) {
		g := NewWithT(t)
		files, _, err := dumps(t, known(t, guest(t).KubeconfigText(t)), t.TempDir(), "--dump-guest-cluster", "--dump-all-guest-namespaces")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).To(HaveKeyWithValue(in+"namespaces/shop/core/configmaps.yaml", ContainSubstring("customers")))
	})
	t.Run("When the guest is not requested, it should not be contacted", func(t *testing.T) {
		g := NewWithT(t)
		files, _, err := dumps(t, known(t, []byte("no kubeconfig")), t.TempDir())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files["not-collected.txt"]).NotTo(ContainSubstring("guest cluster"))
	})
	for name, tt := range map[string]struct {
		server func(t *testing.T) *kubetest.Server
		says   string
	}{
		"has no kubeconfig": {func(t *testing.T) *kubetest.Server { t.Helper(); return sick(t) },
			"find its kubeconfig: it has no kubeconfig yet"},
		"has one that cannot be read": {func(t *testing.T) *kubetest.Server {
			t.Helper()
			return known(t,
				[]byte("sesame: ["))
		}, "Secret clusters-demo-v1/admin-kubeconfig is refused: "},
		"is down": {func(t *testing.T) *kubetest.Server {
			t.Helper()
			g := guest(t)
			g.Refuse(func(*http.Request) bool { return true })
			return known(t, g.KubeconfigText(t))
		}, "guest cluster: ask https://"},
	} {
		t.Run("When the guest "+name+" it should be half a dump, which says so", func(t *testing.T) {
			g := NewWithT(t)
			files, _, err := dumps(t, tt.server(t), t.TempDir(), "--dump-guest-cluster")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(files).To(HaveKeyWithValue("not-collected.txt", ContainSubstring(tt.says)))
			g.Expect(files).To(HaveKey("namespaces/clusters/hypershift.openshift.io/hostedclusters.yaml"))
		})
	}
}

func TestCollectWithFewRights(t *testing.T) {
	t.Run("When one resource may not be listed, it should collect the others and report the missing one", func(t *testing.T) {
		g, s := NewWithT(t), sick(t)
		s.Refuse(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/secrets") })
		files, _, err := dumps(t, s, t.TempDir())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).To(HaveKeyWithValue("not-collected.txt", ContainSubstring("list /v1, Resource=secrets of namespace clusters: ")))
		g.Expect(files).To(HaveKey("namespaces/hypershift/core/pods.yaml"))
	})
	t.Run("When the HostedCluster is gone, it should collect what is left of the cluster", func(t *testing.T) {
		g, s := NewWithT(t), sick(t)
		g.Expect(s.Client.Delete(t.Context(), &hyperv1.HostedCluster{ObjectMeta: at("clusters", "demo.v1")})).To(Succeed())
		files, _, err := dumps(t, s, t.TempDir())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).To(HaveKeyWithValue("not-collected.txt", ContainSubstring("read HostedCluster clusters/demo.v1: ")))
		g.Expect(files).To(HaveKey("namespaces/clusters-demo-v1/pods/etcd-0/main.log"))
	})
	t.Run("When the management cluster is unreachable, it should return an error and leave no files", func(t *testing.T) {
		g, s := NewWithT(t), sick(t)
		s.Refuse(func(*http.Request) bool { return true })
		files, _, err := dumps(t, s, t.TempDir())
		g.Expect(err).To(MatchError(ContainSubstring("ask https://")))
		g.Expect(exit.Code(err)).To(Equal(exit.Failure))
		g.Expect(files).To(BeEmpty())
	})
	t.Run("When it cannot write the list of missing files, it should return an error", func(t *testing.T) {
		g, s, dir := NewWithT(t), sick(t), t.TempDir()
		g.Expect(os.MkdirAll(filepath.Join(dir, "hypershift-dump", "not-collected.txt"), 0o700)).To(Succeed())
		s.Refuse(func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/secrets") })
		_, _, err := dumps(t, s, dir)
		g.Expect(err).To(MatchError(ContainSubstring("not-collected.txt")))
	})
	t.Run("When the Agents have their own namespace, it should collect only Agents there", func(t *testing.T) {
		g := NewWithT(t)
		files, said, err := dumps(t, sick(t), t.TempDir(), "--agent-namespace=others")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(ContainSubstring("collecting the hosts of namespace others"))
		for name := range files {
			g.Expect(name).NotTo(HavePrefix("namespaces/others"))
		}
		_, said, err = dumps(t, sick(t), t.TempDir(), "--agent-namespace=clusters-demo-v1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).NotTo(ContainSubstring("collecting the hosts"), "they are there already")
	})
	t.Run("When it is interrupted, the dump should list what was not collected", func(t *testing.T) {
		g, s := NewWithT(t), sick(t)
		ctx, cancel := context.WithCancel(t.Context())
		s.Refuse(func(r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/log") {
				cancel()
			}
			return false
		})
		cmd := NewCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetErr(io.Discard)
		dir := t.TempDir()
		cmd.SetArgs([]string{"--name=demo.v1", "--artifact-dir", dir, "--kubeconfig", s.Kubeconfig, "--archive-dump=false"})
		_ = cmd.ExecuteContext(ctx)
		text, err := os.ReadFile(filepath.Join(dir, "hypershift-dump", "not-collected.txt"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(ContainSubstring("context canceled"))
	})
}

func TestArchive(t *testing.T) {
	t.Run("When the dump is archived, only the archive should be left, readable by its owner only", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		archive := filepath.Join(dir, "hypershift-dump.tar.gz")
		g.Expect(os.WriteFile(archive, []byte("of yesterday"), 0o600)).To(Succeed())
		g.Expect(os.Chmod(archive, 0o644)).To(Succeed())
		files, said, err := dumps(t, sick(t), dir, "--archive-dump")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).To(BeEmpty())
		g.Expect(said).To(ContainSubstring("written to " + archive))
		info, err := os.Stat(archive)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
		raw, err := os.ReadFile(archive)
		g.Expect(err).NotTo(HaveOccurred())
		unpacked, err := gzip.NewReader(bytes.NewReader(raw))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = tar.NewReader(unpacked).Next()
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("When the archive cannot be written, the collected files should stay", func(t *testing.T) {
		g, dir := NewWithT(t), t.TempDir()
		g.Expect(os.Mkdir(filepath.Join(dir, "hypershift-dump.tar.gz"), 0o700)).To(Succeed())
		files, _, err := dumps(t, sick(t), dir, "--archive-dump=true")
		g.Expect(err).To(MatchError(ContainSubstring("make the archive: ")))
		g.Expect(files).NotTo(BeEmpty())
	})
	t.Run("When the flag is not set, the dump should be archived", func(t *testing.T) {
		g, dir, cmd := NewWithT(t), t.TempDir(), NewCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetErr(io.Discard)
		cmd.SetArgs([]string{"--name=demo.v1", "--artifact-dir", dir, "--kubeconfig", sick(t).Kubeconfig})
		g.Expect(cmd.ExecuteContext(t.Context())).To(Succeed())
		left, err := os.ReadDir(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left).To(ConsistOf(HaveField("Name()", "hypershift-dump.tar.gz")))
		cmd.SetArgs([]string{"stray"})
		g.Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring("unknown command")))
	})
	for _, args := range [][]string{{"--name=demo"}, {"--artifact-dir=a"}, nil} {
		t.Run("When only "+strings.Join(args, "")+" is given, it should say what is required", func(t *testing.T) {
			g, cmd := NewWithT(t), NewCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append([]string{}, args...)) // Cobra replaces nil with the arguments of the test binary.
			err := cmd.ExecuteContext(t.Context())
			g.Expect(err).To(MatchError("--name and --artifact-dir are required"))
			g.Expect(exit.Code(err)).To(Equal(exit.Usage))
		})
	}
}

// TestOfPlatform checks that platform namespaces of a guest are distinguished from those of its users.
func TestOfPlatform(t *testing.T) {
	for name, want := range map[string]bool{
		"openshift": true, "openshift-dns": true, "kube-system": true, "hypershift-network": true,
		"default": false, "shop": false, "openshiftish": false, "kubecost": false, "my-openshift-dns": false,
	} {
		NewWithT(t).Expect(ofPlatform(name)).To(Equal(want), name)
	}
}
