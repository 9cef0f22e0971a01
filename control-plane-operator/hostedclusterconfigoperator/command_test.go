// SPDX-License-Identifier: Apache-2.0

package hostedclusterconfigoperator

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
)

func TestSetUp(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		asked, want []string
		breaks      string
		wrong       string
	}{
		"no controller is named":   {nil, []string{"address", "node", "resources"}, "", ""},
		"some are named":           {[]string{"node", "address"}, []string{"address", "node"}, "", ""},
		"one is named twice":       {[]string{"node", "node"}, []string{"node"}, "", ""},
		"one is misspelt":          {[]string{"node", "nodes"}, nil, "", `there is no controller "nodes"; name some of address, node, resources`},
		"one cannot be set up":     {[]string{"node"}, []string{"node"}, "node", "setting up the node controller: broken"},
		"an unnamed one is broken": {[]string{"address"}, []string{"address"}, "node", ""},
	} {
		t.Run("When "+name+" it should set up the named controllers or all", func(t *testing.T) {
			g, did, controllers := NewWithT(t), []string(nil), map[string]func() error{}
			for _, each := range []string{"resources", "node", "address"} {
				controllers[each] = func() error {
					did = append(did, each)
					if each == tc.breaks {
						return broken
					}
					return nil
				}
			}
			err := (&options{controllers: tc.asked}).setUp(controllers)
			if tc.wrong != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			slices.Sort(did)
			g.Expect(cmp.Diff(tc.want, did)).To(BeEmpty())
		})
	}
}

// TestArguments checks that errors in the command line are reported before the program connects to a cluster.
func TestArguments(t *testing.T) {
	needed := []string{"--namespace=clusters-demo", "--hosted-control-plane=demo", "--target-kubeconfig=/no/such/kubeconfig"}
	for name, tc := range map[string]struct {
		args  []string
		env   map[string]string
		wrong string
	}{
		"nothing":                             {nil, nil, "--hosted-control-plane is missing"},
		"an unexpected argument":              {append([]string{"extra"}, needed...), nil, "unknown command"},
		"invalid overrides":                   {append([]string{"--registry-overrides=quay.io"}, needed...), nil, "--registry-overrides: "},
		"invalid mirrors":                     {needed, map[string]string{"OPENSHIFT_IMG_OVERRIDES": "quay.io"}, "OPENSHIFT_IMG_OVERRIDES: "},
		"flags of another distribution alone": {append([]string{"--konnectivity-port=x"}, needed...), nil, "konnectivity-port"},
	} {
		t.Run("When it is started with "+name+" it should name the error", func(t *testing.T) {
			for key, value := range tc.env {
				t.Setenv(key, value)
			}
			cmd := NewCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append([]string{}, tc.args...))
			NewWithT(t).Expect(cmd.ExecuteContext(t.Context())).To(MatchError(ContainSubstring(tc.wrong)))
		})
	}
	t.Run("When the guest kubeconfig is missing, it should name the file", func(t *testing.T) {
		config := filepath.Join(t.TempDir(), "management")
		text := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: 'https://192.0.2.1'}}]\n"
		g := NewWithT(t)
		g.Expect(os.WriteFile(config, []byte(text), 0o600)).To(Succeed())
		t.Setenv("KUBECONFIG", config)
		o := &options{targetKubeconfig: "/no/such/kubeconfig"}
		g.Expect(o.manage(t.Context(), nil)).To(
			MatchError(ContainSubstring("--target-kubeconfig: reading kubeconfig /no/such/kubeconfig")))
	})
}

// TestEnvironment checks that the namespace may come from the pod's environment, and that a flag takes precedence.
func TestEnvironment(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("POD_NAMESPACE", "clusters-demo")
	g.Expect(NewCommand().Flags().Lookup("namespace").Value.String()).To(Equal("clusters-demo"))
	cmd := NewCommand()
	g.Expect(cmd.ParseFlags([]string{"--namespace=another"})).To(Succeed())
	g.Expect(cmd.Flags().Lookup("namespace").Value.String()).To(Equal("another"))
}

// TestCaches checks what the caches contain. A guest may have more objects than fit into a control plane's pod, and
// the operator may watch only one Secret of a hosted namespace.
func TestCaches(t *testing.T) {
	g := NewWithT(t)
	management := managementCache("clusters-demo")
	g.Expect(management.DefaultNamespaces).To(And(HaveLen(1), HaveKey("clusters-demo")))
	g.Expect(management.ByObject).To(HaveLen(1))
	for obj, kept := range management.ByObject {
		g.Expect(obj).To(BeAssignableToTypeOf(&corev1.Secret{}))
		g.Expect(kept.Field.String()).To(Equal("metadata.name=" + kubeapiserver.EncryptionSecret))
	}
	guest := guestCache()
	g.Expect(guest.DefaultLabelSelector.String()).To(Equal("hypershift.openshift.io/managed=true"))
	all := map[bool]int{}
	for obj, kept := range guest.ByObject {
		all[kept.Label.Empty()]++
		g.Expect([]client.Object{&corev1.Node{}, &certificatesv1.CertificateSigningRequest{}}).To(ContainElement(BeAssignableToTypeOf(obj)))
	}
	g.Expect(all).To(Equal(map[bool]int{true: 2}), "nodes and their requests are nobody's to label")
}
