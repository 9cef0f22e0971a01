// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/test/journey"
)

const (
	// leafLife is the lifetime of certificates in this test, in real time; clients must load a new one within half of
	// it.
	leafLife = 10 * time.Minute
	// rotationLimit is the timeout for a rotation of all signers. Each of three API servers restarts three times, and
	// before each restart it informs its clients.
	rotationLimit = 40 * time.Minute
)

// TestRotation checks that clients can write while all signers of a highly available cluster rotate. Its certificates
// live ten minutes and are renewed repeatedly. HYPERSHIFT_ROTATION is the duration, by default one hour.
func TestRotation(t *testing.T) {
	span := time.Hour
	if text := os.Getenv("HYPERSHIFT_ROTATION"); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatalf("HYPERSHIFT_ROTATION=%s is no duration: %v", text, err)
		}
	}
	s := start(t, 3)
	s.must(t, s.Install(t.Context()))
	s.must(t, s.CreateCluster(t.Context(), cluster, 1, "--control-plane-availability-policy", "HighlyAvailable",
		"--annotations", fmt.Sprintf("%s=%s,%s=50", hyperv1.CertificateValidityAnnotation, leafLife, hyperv1.CertificateRenewalAnnotation)))
	s.must(t, s.FollowCluster(t.Context(), cluster, 1))
	s.must(t, s.Reach(t.Context(), "control plane whole", wholeLimit, s.whole))

	g := NewWithT(t)
	machines, begun := s.machines(t), s.leaves(t)
	g.Expect(begun).NotTo(BeEmpty())
	s.writing(t, "rotation for "+span.String(), s.bearer(t, span+rotationLimit), usual, func() { s.rotate(t, span) })
	for name, renewed := range s.leaves(t) {
		g.Expect(renewed).To(BeTemporally(">", begun[name]), "the certificate of Secret %s was renewed", name)
	}
	g.Expect(s.machines(t)).To(Equal(machines), "no machine was made anew")
	s.must(t, s.SaveKubeconfig(t.Context(), cluster))
	s.must(t, s.Reach(t.Context(), "node ready", 3*time.Minute, s.NodesReady(cluster, 1)))
}

// rotate rotates all signers repeatedly until span is over, and waits until the last rotation is complete.
func (s *suite) rotate(t *testing.T, span time.Duration) {
	t.Helper()
	// under is true after the last requested rotation has started. Until then, the condition describes the previous
	// rotation.
	end, times, under := time.Now().Add(span), 0, false
	s.must(t, s.Reach(t.Context(), "rotations", span+rotationLimit, func(ctx context.Context) (bool, string, error) {
		hc := &hyperv1.HostedCluster{}
		if err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.Namespace, Name: cluster}, hc); err != nil {
			return false, "", err
		}
		c := meta.FindStatusCondition(hc.Status.Conditions, string(hyperv1.SignersUpToDate))
		mark := fmt.Sprintf("all=%d", times)
		switch {
		case c == nil:
			return false, "not told of", nil
		case times > 0 && c.Status != metav1.ConditionTrue:
			under = under || s.takenUp(ctx, mark)
			return false, mark + " " + c.Reason, nil
		case times > 0 && !under:
			return false, mark + " not begun", nil
		case times > 0 && time.Now().After(end):
			return true, fmt.Sprintf("%d rotations", times), nil
		}
		times, under = times+1, false
		before := hc.DeepCopy()
		hc.Annotations[hyperv1.RotateSignersAnnotation] = fmt.Sprintf("all=%d", times)
		return false, "", s.c.Patch(ctx, hc, client.MergeFrom(before))
	}))
}

// takenUp reports whether the rotation that is requested with this mark has reached the root CA.
func (s *suite) takenUp(ctx context.Context, mark string) bool {
	root := &corev1.Secret{}
	err := s.c.Get(ctx, client.ObjectKey{Namespace: journey.HostedNamespace(cluster), Name: "root-ca"}, root)
	return err == nil && "all="+root.Annotations["hypershift.openshift.io/rotated-for"] == mark
}

// bearer returns a configuration with the current CA and a long-lived token. It is not updated after a rotation.
func (s *suite) bearer(t *testing.T, life time.Duration) *rest.Config {
	t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", s.Path(cluster+".kubeconfig"))
	s.must(t, err)
	guest, err := kubernetes.NewForConfig(admin)
	s.must(t, err)
	s.must(t, s.Type(t.Context(), s.Guest(cluster, "create", "serviceaccount", "writer", "-n", "default")...))
	s.must(t, s.Type(t.Context(), s.Guest(cluster, "create", "rolebinding", "writer", "-n", "default", "--clusterrole=edit", "--serviceaccount=default:writer")...))
	token, err := guest.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "writer",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(life.Seconds()))}}, metav1.CreateOptions{})
	s.must(t, err)
	return &rest.Config{Host: admin.Host, BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData}}
}

// leaves returns the start times of the control plane's certificates, by Secret.
func (s *suite) leaves(t *testing.T) map[string]time.Time {
	t.Helper()
	secrets := &corev1.SecretList{}
	s.must(t, s.c.List(t.Context(), secrets, client.InNamespace(journey.HostedNamespace(cluster))))
	begun := map[string]time.Time{}
	for _, secret := range secrets.Items {
		for _, key := range []string{corev1.TLSCertKey, "server.crt", "peer.crt", "etcd-client.crt"} {
			block, _ := pem.Decode(secret.Data[key])
			if block == nil {
				continue
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			s.must(t, err)
			if cert.NotAfter.Sub(cert.NotBefore) < 2*leafLife {
				begun[secret.Name] = cert.NotBefore
			}
		}
	}
	return begun
}

// machines returns the UIDs of the cluster's machines.
func (s *suite) machines(t *testing.T) sets.Set[types.UID] {
	t.Helper()
	machines := &clusterv1.MachineList{}
	s.must(t, s.c.List(t.Context(), machines, client.InNamespace(journey.HostedNamespace(cluster))))
	uids := sets.New[types.UID]()
	for _, machine := range machines.Items {
		uids.Insert(machine.UID)
	}
	return uids
}
