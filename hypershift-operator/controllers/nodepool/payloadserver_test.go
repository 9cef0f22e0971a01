// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	ignition "github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/fixture"
)

// payloadServer simulates the ignition-server of an OpenShift payload (openshift/hypershift ignition-server, the same
// in all lines). It accepts tokens for eleven hours, rotates them after half of that, keeps the previous token, and
// deletes expired Secrets.
type payloadServer struct {
	*world
	known map[string]string
}

const tokenLife = 11 * time.Hour

// look performs one reconcile of the token Secrets.
func (p *payloadServer) look() {
	p.t.Helper()
	p.known = map[string]string{}
	secrets := &corev1.SecretList{}
	p.Expect(p.client.List(p.t.Context(), secrets, client.InNamespace(p.hosted()))).To(Succeed())
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		if _, is := secret.Annotations["hypershift.openshift.io/ignition-config"]; !is {
			continue
		}
		if ends := secret.Annotations["hypershift.openshift.io/ignition-token-expiration-timestamp"]; ends != "" {
			at, err := time.Parse(time.RFC3339, ends)
			p.Expect(err).NotTo(HaveOccurred())
			if p.clock.Now().After(at) {
				p.Expect(p.client.Delete(p.t.Context(), secret)).To(Succeed())
				continue
			}
		}
		p.rotate(secret)
		p.known[string(secret.Data["token"])], p.known[string(secret.Data["old_token"])] = secret.Name, secret.Name
	}
	p.answer()
}

func (p *payloadServer) rotate(secret *corev1.Secret) {
	p.t.Helper()
	made, err := time.Parse(time.RFC3339Nano, secret.Annotations["hypershift.openshift.io/last-token-generation-time"])
	p.Expect(err).NotTo(HaveOccurred())
	if p.clock.Since(made) < tokenLife/2 {
		return
	}
	secret.Data["old_token"] = secret.Data["token"]
	secret.Data["token"] = []byte(fmt.Sprintf("token-of-%s", p.clock.Now().Format(time.TimeOnly)))
	secret.Annotations["hypershift.openshift.io/last-token-generation-time"] = p.clock.Now().Format(time.RFC3339Nano)
	p.Expect(p.client.Update(p.t.Context(), secret)).To(Succeed())
}

// fetch requests the configuration as a machine with this user-data does, and returns the server's status code.
func (p *payloadServer) fetch(userData []byte) int {
	p.t.Helper()
	config, _, err := ignition.Parse(userData)
	p.Expect(err).NotTo(HaveOccurred())
	headers := http.Header{}
	for _, h := range config.Ignition.Config.Merge[0].HTTPHeaders {
		headers.Set(h.Name, *h.Value)
	}
	encoded, bearer := strings.CutPrefix(headers.Get("Authorization"), "Bearer ")
	token, err := base64.StdEncoding.DecodeString(encoded)
	if !bearer || err != nil {
		return http.StatusUnauthorized
	}
	if p.known[string(token)] == "" {
		return http.StatusNetworkAuthenticationRequired
	}
	_, pool, _ := strings.Cut(headers.Get("NodePool"), "/")
	secret := p.secret("token-" + pool + "-" + headers.Get("TargetConfigVersionHash"))
	scope.Annotate(secret, "hypershift.openshift.io/ignition-reached", "True")
	p.Expect(p.client.Update(p.t.Context(), secret)).To(Succeed())
	return http.StatusOK
}

// userData returns the user-data of the next machine.
func (s *world) userData() []byte {
	s.t.Helper()
	return s.secret(*s.deployment().Spec.Template.Spec.Bootstrap.DataSecretName).Data["value"]
}

// booting returns a pool with the payload's ignition-server.
func booting(t *testing.T, c client.WithWatch, name string, mutate func(*hyperv1.HostedCluster)) *payloadServer {
	t.Helper()
	s := newWorld(t, c, name)
	s.openShift(hyperv1.UpgradeTypeReplace)
	s.coreConfigs()
	hc := &hyperv1.HostedCluster{}
	s.Expect(c.Get(t.Context(), ctrlKey(name, fixture.ClusterName), hc)).To(Succeed())
	if mutate != nil {
		mutate(hc)
		s.Expect(c.Update(t.Context(), hc)).To(Succeed())
	}
	s.mustPass()
	p := &payloadServer{world: s}
	p.look()
	return p
}

func TestTokensOfPayload(t *testing.T) {
	c := fixture.Start(t)
	p := booting(t, c, "payload-tokens", nil)
	t.Run("When the first machine boots, ReachedIgnitionEndpoint should change from false to true", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(p.condition("ReachedIgnitionEndpoint").Status).To(Equal(corev1.ConditionFalse))
		g.Expect(p.fetch(p.userData())).To(Equal(http.StatusOK))
		p.mustPass()
		g.Expect(p.condition("ReachedIgnitionEndpoint").Status).To(Equal(corev1.ConditionTrue))
	})
	t.Run("When tokens are rotated, a machine should boot with the current or the previous user-data", func(t *testing.T) {
		g := NewWithT(t)
		before := p.userData()
		for range 3 {
			installing := p.userData()
			p.clock.Step(tokenLife / 2)
			p.look()
			p.mustPass()
			g.Expect(p.userData()).NotTo(Equal(installing))
			g.Expect(p.fetch(p.userData())).To(Equal(http.StatusOK))
			g.Expect(p.fetch(installing)).To(Equal(http.StatusOK))
		}
		g.Expect(p.fetch(before)).To(Equal(http.StatusNetworkAuthenticationRequired))
	})
	t.Run("When the configuration changes, the old token should expire only after its machines join and its grace ends", func(t *testing.T) {
		g := NewWithT(t)
		machine := p.machine("installing", *p.deployment().Spec.Template.Spec.Bootstrap.DataSecretName)
		old := p.tokenOf(*machine.Spec.Bootstrap.DataSecretName)
		ref := p.configMap("kubelet", "config", kubeletDocument)
		p.change(func(pool *hyperv1.NodePool) { pool.Spec.Config = []corev1.LocalObjectReference{ref} })
		p.mustPass()
		p.clock.Step(3 * time.Hour)
		p.look()
		g.Expect(p.fetch(p.secret(*machine.Spec.Bootstrap.DataSecretName).Data["value"])).To(Equal(http.StatusOK), "it is still being installed")
		p.serve(machine)
		p.mustPass()
		g.Expect(p.gone(&corev1.Secret{}, ctrlKey(p.hosted(), *machine.Spec.Bootstrap.DataSecretName))).To(BeTrue())
		p.look()
		p.secret(old.Name)
		p.clock.Step(2*time.Hour + time.Second)
		p.look()
		g.Expect(p.gone(&corev1.Secret{}, client.ObjectKeyFromObject(old))).To(BeTrue())
		g.Expect(p.fetch(p.userData())).To(Equal(http.StatusOK))
	})
	t.Run("When the server's CA changes, new machines should trust the new CA", func(t *testing.T) {
		g := NewWithT(t)
		ca := p.secret("ignition-server-ca-cert")
		ca.Data["tls.crt"] = []byte("another CA")
		g.Expect(c.Update(t.Context(), ca)).To(Succeed())
		p.mustPass()
		config, _, err := ignition.Parse(p.userData())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Ignition.Security.TLS.CertificateAuthorities).To(ConsistOf(types.Resource{
			Source: ptr.To("data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte("another CA")))}))
	})
}
