// SPDX-License-Identifier: Apache-2.0

package tokenminter

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/testenv"
)

func kubeconfigFile(t *testing.T, config *rest.Config) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["guest"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["guest"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts["guest"] = &clientcmdapi.Context{Cluster: "guest", AuthInfo: "guest"}
	file.CurrentContext = "guest"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMinter(t *testing.T) {
	config := testenv.Start(t)
	guest, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	args := []string{"--service-account-namespace=kube-system", "--service-account-name=minted", "--token-audience=cloud",
		"--token-file=" + token, "--kubeconfig=" + kubeconfigFile(t, config), "--oneshot"}
	mint := func(ctx context.Context, args ...string) error {
		cmd := NewCommand()
		cmd.SetArgs(args)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		return cmd.ExecuteContext(ctx)
	}
	t.Run("When the ServiceAccount is missing, it should create it and mint a token for the audience only", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(mint(t.Context(), args...)).To(Succeed())
		raw, err := os.ReadFile(token)
		g.Expect(err).NotTo(HaveOccurred())
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(raw), Audiences: []string{"cloud"}}}
		g.Expect(guest.Create(t.Context(), review)).To(Succeed())
		g.Expect(review.Status.Authenticated).To(BeTrue(), review.Status.Error)
		g.Expect(review.Status.User.Username).To(Equal("system:serviceaccount:kube-system:minted"))
		other := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(raw)}}
		g.Expect(guest.Create(t.Context(), other)).To(Succeed())
		g.Expect(other.Status.Authenticated).To(BeFalse(), "the guest itself takes no token that is for the cloud")
	})
	t.Run("When a token file exists, it should replace the file and leave no temporary file", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(os.WriteFile(token, []byte("old"), 0o600)).To(Succeed())
		g.Expect(mint(t.Context(), args...)).To(Succeed())
		g.Expect(os.ReadFile(token)).NotTo(BeEquivalentTo("old"))
		g.Expect(os.ReadDir(filepath.Dir(token))).To(HaveLen(1))
	})
	t.Run("When the guest does not answer, it should retry until the context ends", func(t *testing.T) {
		away := rest.CopyConfig(config)
		away.Host = "https://127.0.0.1:1"
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		NewWithT(t).Expect(mint(ctx, append(args, "--kubeconfig="+kubeconfigFile(t, away))...)).To(Succeed(),
			"not an error: the pod would be started again and again")
		NewWithT(t).Expect(ctx.Err()).To(HaveOccurred())
	})
	t.Run("When the kubeconfig is in a Secret of the management cluster, it should read the Secret", func(t *testing.T) {
		g := NewWithT(t)
		around := kubeconfigFile(t, config)
		t.Setenv("KUBECONFIG", around)
		raw, err := os.ReadFile(around)
		g.Expect(err).NotTo(HaveOccurred())
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guest"}, Data: map[string][]byte{"kubeconfig": raw}}
		g.Expect(guest.Create(t.Context(), secret)).To(Succeed())
		g.Expect(os.Remove(token)).To(Succeed())
		g.Expect(mint(t.Context(), append(args, "--kubeconfig=nowhere", "--kubeconfig-secret-namespace=default", "--kubeconfig-secret-name=guest")...)).To(Succeed())
		g.Expect(token).To(BeAnExistingFile())
		o := options{secretNamespace: "default", secretName: "absent"}
		_, err = o.guestConfig(t.Context())
		g.Expect(err).To(MatchError(ContainSubstring("reading Secret default/absent")))
	})
	t.Run("When a flag is missing, it should name the flag", func(t *testing.T) {
		NewWithT(t).Expect(mint(t.Context(), args[0], args[3])).To(MatchError("--service-account-name is missing"))
		NewWithT(t).Expect(mint(t.Context(), append(args, "--kubeconfig-secret-name=guest")...)).To(MatchError(ContainSubstring("go together")))
	})
}
