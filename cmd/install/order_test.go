// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/openshift/hypershift/cmd/exit"
	"github.com/openshift/hypershift/cmd/kube"
	"github.com/openshift/hypershift/cmd/progress"
)

// writes records what is written to a management cluster, and can fail one of the writes.
type writes struct {
	client.Client
	all []string
	// fails is the prefix of the write that fails; empty for none.
	fails string
}

func newWrites(objects ...client.Object) *writes {
	w := &writes{}
	note := func(verb, object string) error {
		w.all = append(w.all, verb+" "+object)
		if w.fails != "" && strings.HasPrefix(verb+" "+object, w.fails) {
			return errNoRights
		}
		return nil
	}
	w.Client = fake.NewClientBuilder().WithScheme(kube.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			return note("create", fmt.Sprintf("%T %s", obj, obj.GetName()))
		},
		Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
			return note("delete", fmt.Sprintf("%T %s", obj, obj.GetName()))
		},
		// The test does not read the objects, and the fake client is slow with all the CRDs.
		Apply: func(_ context.Context, _ client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			raw, err := json.Marshal(obj)
			if err != nil {
				return err
			}
			var applied struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := json.Unmarshal(raw, &applied); err != nil {
				return err
			}
			options := client.ApplyOptions{}
			options.ApplyOptions(opts)
			if options.FieldManager != FieldOwner || options.Force == nil || !*options.Force {
				return fmt.Errorf("%s is applied as %q", applied.Metadata.Name, options.FieldManager)
			}
			verb := "apply"
			if len(options.DryRun) > 0 {
				verb = "check"
			}
			return note(verb, applied.Kind+" "+applied.Metadata.Name)
		},
	}).Build()
	return w
}

func (w *writes) with(prefix string) []string {
	return slices.DeleteFunc(slices.Clone(w.all), func(line string) bool { return !strings.HasPrefix(line, prefix) })
}

func (w *writes) install(t *testing.T, args ...string) (said string, err error) {
	t.Helper()
	var out strings.Builder
	i := &install{Options: *installation(t, args...)}
	err = i.install(t.Context(), w, progress.New(&out, clock.RealClock{}))
	return out.String(), err
}

func TestInstallOrder(t *testing.T) {
	t.Run("When everything is installed, it should dry-run all CRDs, then apply them, then the operator", func(t *testing.T) {
		g, w := NewWithT(t), newWrites()
		said, err := w.install(t)
		g.Expect(err).NotTo(HaveOccurred())
		checked, applied := w.with("check CustomResourceDefinition"), w.with("apply CustomResourceDefinition")
		g.Expect(len(checked)).To(BeNumerically(">", 10))
		g.Expect(applied).To(HaveLen(len(checked)))
		g.Expect(w.all[:len(checked)]).To(Equal(checked))
		g.Expect(w.all[len(checked) : 2*len(checked)]).To(Equal(applied))
		g.Expect(said).To(ContainSubstring(fmt.Sprintf("%d CRDs applied", len(applied))))
		at := func(line string) int {
			g.Expect(w.all).To(ContainElement(line))
			return slices.Index(w.all, line)
		}
		operator := at("apply Deployment operator")
		for _, before := range []string{"create *v1.PriorityClass hypershift-operator", "apply Namespace hypershift", "apply ServiceAccount operator", "apply ClusterRoleBinding hypershift-operator"} {
			g.Expect(at(before)).To(BeNumerically("<", operator), before)
		}
		g.Expect(at("apply MutatingWebhookConfiguration hypershift.openshift.io")).To(BeNumerically(">", at("apply Service operator")), "who calls it finds somebody")
		g.Expect(said).To(ContainSubstring("Deployment hypershift/operator applied"))
	})
	t.Run("When a CRD would be rejected, it should change nothing", func(t *testing.T) {
		g, w := NewWithT(t), newWrites()
		w.fails = "check CustomResourceDefinition nodepools"
		_, err := w.install(t)
		g.Expect(err).To(MatchError(ContainSubstring("apply CustomResourceDefinition nodepools.hypershift.openshift.io: no rights")))
		g.Expect(w.with("apply")).To(BeEmpty())
		g.Expect(w.with("create")).To(BeEmpty())
	})
	t.Run("When an object is rejected, it should stop there, and the next run should complete the installation", func(t *testing.T) {
		g, w := NewWithT(t), newWrites()
		w.fails = "apply ServiceAccount"
		_, err := w.install(t, "--install-scope=resources")
		g.Expect(err).To(MatchError("apply ServiceAccount hypershift/operator: no rights"))
		g.Expect(w.all[len(w.all)-1]).To(Equal("apply ServiceAccount operator"))
		cut := len(w.all)
		w.fails, w.all = "", nil
		_, err = w.install(t, "--install-scope=resources")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(w.all)).To(BeNumerically(">", cut))
	})
	t.Run("When the command runs again, it should write the same objects", func(t *testing.T) {
		g, w := NewWithT(t), newWrites()
		_, err := w.install(t, "--install-scope=resources")
		g.Expect(err).NotTo(HaveOccurred())
		first := w.all
		w.all = nil
		_, err = w.install(t, "--install-scope=resources")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.all).To(Equal(first))
	})
	for scope, want := range map[string][2]bool{scopeCRDs: {true, false}, scopeResources: {false, true}} {
		t.Run("When only "+scope+" are installed, it should leave the others", func(t *testing.T) {
			g, w := NewWithT(t), newWrites()
			_, err := w.install(t, "--install-scope", scope, "--enable-defaulting-webhook=false", "--limit-crd-install=none")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(w.with("apply CustomResourceDefinition")) > 0).To(Equal(want[0]))
			g.Expect(len(w.with("apply Deployment")) > 0).To(Equal(want[1]))
			g.Expect(len(w.with("delete")) > 0).To(Equal(want[1]), "what an earlier operator left is not the business of who installs CRDs")
		})
	}
	t.Run("When CRDs belong to another product, it should leave them unchanged and name them", func(t *testing.T) {
		g, w := NewWithT(t), newWrites(definition("machines.cluster.x-k8s.io", "", "v1beta2"))
		said, err := w.install(t, "--install-scope=crds", "--limit-crd-install=none")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(ContainSubstring("CRD machines.cluster.x-k8s.io belongs to another product and is left as it is"))
		g.Expect(w.all).NotTo(ContainElement(HaveSuffix(" machines.cluster.x-k8s.io")))
		g.Expect(w.all).To(ContainElement("apply CustomResourceDefinition machinesets.cluster.x-k8s.io"))
	})
}

// rendered runs `install render`.
func rendered(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Setenv(imageEnv, "registry.example/hypershift:1")
	cmd := NewCommand(func() []Part { return nil })
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out, said strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SetArgs(append([]string{"render"}, args...))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), said.String(), err
}

func TestRender(t *testing.T) {
	pull := filepath.Join(t.TempDir(), "pull.json")
	NewWithT(t).Expect(os.WriteFile(pull, []byte(`{"auths":{"r":{"password":"sesame"}}}`), 0o600)).To(Succeed())
	kinds := func(g *GomegaWithT, text string) []string {
		var list struct{ Items []struct{ Kind string } }
		g.Expect(json.Unmarshal([]byte(text), &list)).To(Succeed())
		var all []string
		for _, item := range list.Items {
			all = append(all, item.Kind)
		}
		return all
	}
	for format, has := range map[string]func(g *GomegaWithT, text string) []string{
		"json": kinds,
		"yaml": func(g *GomegaWithT, text string) []string {
			var all []string
			for _, document := range strings.Split(text, "---\n")[1:] {
				var obj struct{ Kind string }
				g.Expect(yaml.Unmarshal([]byte(document), &obj)).To(Succeed())
				all = append(all, obj.Kind)
			}
			return all
		},
	} {
		t.Run("When "+format+" is requested, it should print what would be applied, in that order, and Secrets only on request", func(t *testing.T) {
			g := NewWithT(t)
			args := []string{"--outputs", "resources", "--pull-secret", pull, "--format", format}
			out, _, err := rendered(t, args...)
			g.Expect(err).NotTo(HaveOccurred())
			without := has(g, out)
			g.Expect(without).NotTo(ContainElement("Secret"))
			g.Expect(without).To(ContainElement("Deployment"))
			g.Expect(slices.Index(without, "Namespace")).To(BeNumerically("<", slices.Index(without, "Deployment")))
			out, _, err = rendered(t, append(args, "--render-sensitive")...)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(slices.DeleteFunc(has(g, out), func(kind string) bool { return kind == "Secret" })).To(Equal(without))
			g.Expect(has(g, out)).To(ContainElement("Secret"))
		})
	}
	for outputs, crds := range map[string]bool{scopeCRDs: true, scopeResources: false} {
		t.Run("When "+outputs+" are requested, nothing else should be printed, whatever is installed", func(t *testing.T) {
			g := NewWithT(t)
			out, _, err := rendered(t, "--outputs", outputs, "--install-scope", "all", "--format", "json")
			g.Expect(err).NotTo(HaveOccurred())
			if crds {
				g.Expect(kinds(g, out)).To(HaveEach("CustomResourceDefinition"))
				return
			}
			g.Expect(kinds(g, out)).NotTo(ContainElement("CustomResourceDefinition"))
		})
	}
	t.Run("When the output file is readable by others, it should restrict the file to its owner", func(t *testing.T) {
		g, file := NewWithT(t), filepath.Join(t.TempDir(), "all.yaml")
		g.Expect(os.WriteFile(file, []byte("left over"), 0o644)).To(Succeed())
		g.Expect(os.Chmod(file, 0o644)).To(Succeed())
		out, said, err := rendered(t, "--outputs=resources", "--pull-secret", pull, "--render-sensitive", "--output-file", file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out + said).To(BeEmpty())
		info, err := os.Stat(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600), "it holds credentials")
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(And(ContainSubstring("kind: Secret"), Not(ContainSubstring("left over"))))
	})
	for name, tt := range map[string]struct {
		args []string
		says string
		code int
	}{
		"the folder is missing":   {[]string{"--output-file", filepath.Join(t.TempDir(), "none", "all.yaml")}, "--output-file: ", exit.Failure},
		"the format is unknown":   {[]string{"--format", "YAML"}, `--format "YAML": use yaml or json`, exit.Usage},
		"the outputs are unknown": {[]string{"--outputs", "none"}, `--outputs "none": use one of all, crds, resources`, exit.Usage},
		"a flag is wrong":         {[]string{"--replicas", "0"}, "--replicas must be 1 or more", exit.Usage},
	} {
		t.Run("When "+name+" it should say so, print nothing, and tell the shell whose mistake it was", func(t *testing.T) {
			g := NewWithT(t)
			out, _, err := rendered(t, append([]string{"--install-scope", "resources"}, tt.args...)...)
			g.Expect(err).To(MatchError(ContainSubstring(tt.says)))
			g.Expect(exit.Code(err)).To(Equal(tt.code))
			g.Expect(out).To(BeEmpty())
		})
	}
	t.Run("When a flag has no effect, it should warn on stderr only", func(t *testing.T) {
		g := NewWithT(t)
		out, said, err := rendered(t, "--outputs=resources", "--tech-preview-no-upgrade")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(said).To(Equal("Warning: --tech-preview-no-upgrade has no effect\n"))
		g.Expect(out).NotTo(ContainSubstring("Warning"))
	})
}

// closed is a writer that always fails.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestRenderedToNobody(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		r := &render{Options: *installation(t), format: format}
		NewWithT(t).Expect(r.write(closed{}, r.resources())).To(MatchError(os.ErrClosed), format)
	}
}
