// SPDX-License-Identifier: Apache-2.0

package hostedcontrolplane

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/pki"
)

const (
	formerHost = "192.0.2.10"
	nextHost   = "192.0.2.99"
)

// running returns a control plane that runs at formerHost, with one API server whose certificate the operator issued.
func running(t *testing.T) (w *world, refused map[string]error) {
	t.Helper()
	w = newWorld(t)
	for range 4 {
		_ = w.pass() // The reconcile waits for components that are not rolled out yet.
		w.rollOut()
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-apiserver-0", Labels: map[string]string{"app": "kube-apiserver"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-apiserver", Image: "registry.example/kube-apiserver"}}},
	}
	w.create(pod)
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.0.0.7"
	if err := w.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	refused = map[string]error{}
	w.r.Shows = func(_ context.Context, address, host string, cas []byte) error {
		at, _, _ := net.SplitHostPort(address)
		if err := refused[at]; err != nil || len(cas) == 0 {
			return err
		}
		return w.serving().VerifyHostname(host)
	}
	return w, refused
}

// serving returns the certificate of the API servers.
func (w *world) serving() *x509.Certificate {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.get(pki.KASServer, secret)
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	return certificate
}

// names returns which of the two hosts the API servers' certificate names.
func (w *world) names() string {
	var names []string
	for _, host := range []string{formerHost, nextHost} {
		if w.serving().VerifyHostname(host) == nil {
			names = append(names, host)
		}
	}
	return strings.Join(names, " ")
}

// kubeconfigServer returns the host in a kubeconfig.
func (w *world) kubeconfigServer(name string) string {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.get(name, secret)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[pki.KubeconfigKey])
	if err != nil {
		w.t.Fatal(err)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(config.Host, "https://"), ":")
	return host
}

// publishAt sets the address of the API server and of the ignition-server.
func (w *world) publishAt(host string) {
	w.edit(func(hcp *hyperv1.HostedControlPlane) {
		for i := range hcp.Spec.Services {
			hcp.Spec.Services[i].ServicePublishingStrategy.NodePort.Address = host
		}
	})
}

// served returns the hosts of the served addresses.
func (w *world) served() string {
	w.get("demo", w.hcp)
	var hosts []string
	for _, a := range w.hcp.Status.ServedAddresses {
		hosts = append(hosts, a.Host)
	}
	return strings.Join(hosts, " ")
}

// used reports, as the config operator does, how many nodes use the first address.
func (w *world) used(arrived, remaining int32) {
	w.t.Helper()
	w.get("demo", w.hcp)
	w.hcp.Status.AddressUse = &hyperv1.AddressUse{Since: w.hcp.Status.ServedAddresses[0].Since, Arrived: arrived, Remaining: remaining, Message: "node a (https://192.0.2.10:30000)"}
	if err := w.client.Status().Update(w.t.Context(), w.hcp); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) addressMessage() string {
	w.get("demo", w.hcp)
	return meta.FindStatusCondition(w.hcp.Status.Conditions, string(hyperv1.PublishedAddressUpToDate)).Message
}

// TestGoOver changes the address of a running control plane, one reconcile at a time, as if the operator restarted
// after each.
func TestGoOver(t *testing.T) {
	w, refused := running(t)
	g := NewWithT(t)
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.condition(hyperv1.PublishedAddressUpToDate)).To(Equal("True/AsExpected"))
	g.Expect(w.served()).To(Equal(formerHost))
	port := w.hcp.Status.ControlPlaneEndpoint.Port

	w.publishAt(nextHost)
	refused["10.0.0.7"] = errors.New("certificate is valid for 192.0.2.10")
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.names()).To(Equal(formerHost+" "+nextHost), "the certificate comes first")
	g.Expect(w.served()).To(Equal(formerHost))
	g.Expect(w.condition(hyperv1.PublishedAddressUpToDate)).To(Equal("False/CertificateInProgress"))
	g.Expect(w.addressMessage()).To(And(ContainSubstring("pod kube-apiserver-0: certificate is valid for"), ContainSubstring(formerHost)))

	delete(refused, "10.0.0.7")
	refused[nextHost] = errors.New("no route to host")
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.served()).To(Equal(nextHost+" "+formerHost), "nodes may go over")
	w.clock.SetTime(w.clock.Now().Add(48 * time.Hour))
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.condition(hyperv1.PublishedAddressUpToDate)).To(Equal("False/AddressNotReached"))
	g.Expect(w.addressMessage()).To(ContainSubstring("no route to host"))
	g.Expect(w.kubeconfigServer(pki.AdminKubeconfig)).To(Equal(formerHost), "an address that nobody reached is nobody's")
	g.Expect(w.hcp.Status.ControlPlaneEndpoint.Host).To(Equal(formerHost))

	// A node uses the address, so the address works, although pods of the management cluster do not reach the machine
	// network.
	w.used(1, 2)
	g.Expect(w.pass()).To(Succeed())
	w.get("demo", w.hcp)
	g.Expect(w.hcp.Status.ControlPlaneEndpoint.Host).To(Equal(nextHost))
	g.Expect(w.kubeconfigServer(pki.AdminKubeconfig)).To(Equal(formerHost), "it is written down before anything is made with it")
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.hcp.Status.ControlPlaneEndpoint).To(Equal(hyperv1.APIEndpoint{Host: nextHost, Port: port}))
	for _, name := range []string{pki.AdminKubeconfig, pki.BootstrapKubeconfig} {
		g.Expect(w.kubeconfigServer(name)).To(Equal(nextHost), name)
	}
	g.Expect(w.names()).To(Equal(formerHost + " " + nextHost))
	g.Expect(w.condition(hyperv1.PublishedAddressUpToDate)).To(Equal("False/NodesMoving"))

	w.clock.SetTime(w.clock.Now().Add(48 * time.Hour))
	w.used(2, 1)
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.served()).To(Equal(nextHost+" "+formerHost), "somebody goes by it")
	g.Expect(w.addressMessage()).To(ContainSubstring("node a (https://192.0.2.10:30000)"))

	w.used(3, 0)
	w.clock.SetTime(w.hcp.Status.ServedAddresses[0].Since.Add(23 * time.Hour))
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.served()).To(Equal(nextHost+" "+formerHost), "kubeconfigs that were handed out have their day")
	g.Expect(w.condition(hyperv1.PublishedAddressUpToDate)).To(Equal("True/FormerAddressServed"))

	w.clock.SetTime(w.clock.Now().Add(2 * time.Hour))
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.served()).To(Equal(nextHost))
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.names()).To(Equal(nextHost))
	g.Expect(w.condition(hyperv1.PublishedAddressUpToDate)).To(Equal("True/AsExpected"))
	g.Expect(w.addressMessage()).To(BeEmpty(), "there is nothing left to wait for")
	writes := w.writes.Count
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.writes.Count).To(Equal(writes), "a settled control plane writes nothing")
}

// TestThinkAgain changes the desired address back while nodes migrate.
func TestThinkAgain(t *testing.T) {
	w, refused := running(t)
	g := NewWithT(t)
	w.edit(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Annotations = map[string]string{hyperv1.AddressOverlapAnnotation: "0s"}
	})
	refused[nextHost] = errors.New("no route to host")
	w.publishAt(nextHost)
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.served()).To(Equal(nextHost + " " + formerHost))
	w.used(1, 0)
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.publishAt(formerHost)
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.served()).To(Equal(formerHost+" "+nextHost), "a node may go by the one that is no longer wanted")
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.names()).To(Equal(formerHost + " " + nextHost))
	g.Expect(w.condition(hyperv1.PublishedAddressUpToDate)).To(Equal("False/NodesMoving"), "what was seen of another address counts for nothing")
	w.used(2, 0)
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.served()).To(Equal(formerHost))
}

// TestToLoadBalancer migrates to a load balancer that gets its address late, and back.
func TestToLoadBalancer(t *testing.T) {
	w, _ := running(t)
	g := NewWithT(t)
	w.edit(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Annotations = map[string]string{hyperv1.AddressOverlapAnnotation: "0s"}
		hcp.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}
	})
	g.Expect(w.pass()).To(Succeed())
	g.Expect(w.condition(hyperv1.PublishedAddressUpToDate)).To(Equal("False/WaitingForAddress"))
	g.Expect(w.condition(hyperv1.InfrastructureReady)).To(Equal("True/AsExpected"), "what there was serves on")
	service := &corev1.Service{}
	w.get("kube-apiserver", service)
	g.Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer))
	port := service.Spec.Ports[0].NodePort
	g.Expect(port).To(Equal(w.hcp.Status.ControlPlaneEndpoint.Port), "nodes go by it")
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: nextHost}}
	g.Expect(w.client.Status().Update(t.Context(), service)).To(Succeed())
	for range 3 {
		g.Expect(w.pass()).To(Succeed())
	}
	g.Expect(w.kubeconfigServer(pki.AdminKubeconfig)).To(Equal(nextHost))
	w.get("demo", w.hcp)
	g.Expect(w.hcp.Status.ControlPlaneEndpoint).To(Equal(hyperv1.APIEndpoint{Host: nextHost, Port: 6443}))

	w.edit(func(hcp *hyperv1.HostedControlPlane) {
		hcp.Spec.Services[0].ServicePublishingStrategy = hyperv1.ServicePublishingStrategy{Type: hyperv1.NodePort, NodePort: &hyperv1.NodePortPublishingStrategy{Address: formerHost}}
	})
	for range 3 {
		g.Expect(w.pass()).To(Succeed())
	}
	w.get("kube-apiserver", service)
	g.Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer), "nodes may go by the load balancer yet")
	w.used(2, 0)
	for range 2 {
		g.Expect(w.pass()).To(Succeed())
	}
	w.get("kube-apiserver", service)
	g.Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeNodePort))
	g.Expect(service.Spec.Ports[0].NodePort).To(Equal(port))
	g.Expect(w.served()).To(Equal(formerHost))
}

func TestAskCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	address := strings.TrimPrefix(server.URL, "https://")
	for name, tc := range map[string]struct {
		address, host string
		cas           []byte
		want          string
	}{
		"When the server's certificate names the host, it should return no error":   {address, "127.0.0.1", own, ""},
		"When the host is a DNS name in the certificate, it should return no error": {address, "example.com", own, ""},
		"When the certificate names another host, it should return an error":        {address, "192.0.2.1", own, "other host names"},
		"When another CA signed the certificate, it should return an error":         {address, "127.0.0.1", nil, "authority that is not trusted"},
		"When the server does not answer, it should return an error":                {"127.0.0.1:1", "127.0.0.1", own, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			err := AskCertificate(t.Context(), tc.address, tc.host, tc.cas, nil)
			if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("%s, want %q", got, tc.want)
			}
		})
	}
	t.Run("When the server has presented its certificate, it should close the connection", func(t *testing.T) {
		closed := make(chan struct{}, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				closed <- struct{}{}
			}
		}
		server.StartTLS()
		t.Cleanup(server.Close)
		g := NewWithT(t)
		g.Expect(AskCertificate(t.Context(), server.Listener.Addr().String(), "127.0.0.1", own, nil)).To(Succeed())
		g.Eventually(closed).Should(Receive())
	})
}
