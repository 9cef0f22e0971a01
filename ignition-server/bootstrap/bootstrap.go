// SPDX-License-Identifier: Apache-2.0

// Package bootstrap creates the credentials with which a machine requests its node's first certificate: a bootstrap
// token of the guest. A token is valid for an hour and for one Machine, and is removed when that Machine has joined.
package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/nodeconfig"
	"github.com/openshift/hypershift/ignition-server/token"
	"github.com/openshift/hypershift/support/kubeconfig"
)

const (
	// Lifetime is the maximum time from the download of a machine's configuration until its kubelet requests a
	// certificate. It covers firmware that takes ten minutes for a reboot, and then the pull of the kubelet's image.
	Lifetime = time.Hour
	// again is how long a repeated request for the same machine gets the same token.
	again = time.Minute
	// perSecond and atOnce limit how many bootstrap tokens, which are Secrets in the guest, clients with a pool's token
	// can create.
	perSecond, atOnce = 1, 100
)

// ErrNoMachine means that the Machine of a token does not exist.
var ErrNoMachine = errors.New("the Machine that the token was made for does not exist")

// errTooMany means that machines request tokens faster than machines can boot.
var errTooMany = errors.New("too many machines ask for bootstrap tokens")

// Credentials creates the credentials with which machines join. It is safe for concurrent use.
type Credentials struct {
	// Guest creates bootstrap tokens.
	Guest client.Writer
	// Management reads the Machines of Namespace without a cache.
	Management client.Reader
	Namespace  string
	Clock      clock.PassiveClock

	limit  flowcontrol.PassiveRateLimiter
	mu     sync.Mutex
	recent map[string]made
}

// made is a token that was created for a machine.
type made struct {
	token string
	at    time.Time
}

// New returns the Credentials of one hosted cluster.
func New(guest client.Writer, management client.Reader, namespace string, clock clock.PassiveClock) *Credentials {
	return &Credentials{
		Guest: guest, Management: management, Namespace: namespace, Clock: clock,
		limit: flowcontrol.NewTokenBucketPassiveRateLimiter(perSecond, atOnce), recent: map[string]made{},
	}
}

// Payload returns the configuration of an entry with credentials for the requesting machine. A machine that is already
// a node gets none. In a cluster without Machines, all machines join with the credentials of the cluster.
func (c *Credentials) Payload(ctx context.Context, e token.Entry) ([]byte, error) {
	bootstrapToken, shared, err := c.tokenOf(ctx, e.Machine)
	if err != nil {
		return nil, err
	}
	if shared {
		return e.Payload, nil
	}
	return nodeconfig.WithBootstrap(e.Payload, func(kubeconfig []byte) ([]byte, error) { return withToken(kubeconfig, bootstrapToken) })
}

// tokenOf returns the bootstrap token of a Machine. It is empty if the Machine already has a Node. Without a name, the
// bootstrap token is for the first Machine that uses it. shared reports whether machines join with the credentials of
// the cluster.
func (c *Credentials) tokenOf(ctx context.Context, name string) (bootstrapToken string, shared bool, err error) {
	if name == "" {
		machines := &clusterv1.MachineList{}
		if err := c.Management.List(ctx, machines, client.InNamespace(c.Namespace), client.Limit(1)); err != nil {
			return "", false, fmt.Errorf("list the Machines of namespace %s: %w", c.Namespace, err)
		}
		if len(machines.Items) == 0 {
			return "", true, nil
		}
		bootstrapToken, err = c.mint(ctx, "")
		return bootstrapToken, false, err
	}
	machine := &clusterv1.Machine{}
	err = c.Management.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, machine)
	if apierrors.IsNotFound(err) {
		return "", false, ErrNoMachine
	}
	if err != nil {
		return "", false, fmt.Errorf("read Machine %s/%s: %w", c.Namespace, name, err)
	}
	if machine.Status.NodeRef.Name != "" {
		return "", false, nil
	}
	bootstrapToken, err = c.remembered(ctx, name)
	return bootstrapToken, false, err
}

// remembered returns the recent token of a Machine, or else a new one.
func (c *Credentials) remembered(ctx context.Context, machine string) (string, error) {
	if known := c.known(machine); known != "" {
		return known, nil
	}
	bootstrapToken, err := c.mint(ctx, machine)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recent[machine] = made{bootstrapToken, c.Clock.Now()}
	return bootstrapToken, nil
}

// known returns the recent token of a Machine; empty if there is none. It forgets tokens that are older than again.
func (c *Credentials) known(machine string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	maps.DeleteFunc(c.recent, func(_ string, m made) bool { return now.Sub(m.at) >= again })
	return c.recent[machine].token
}

// mint creates a bootstrap token in the guest.
func (c *Credentials) mint(ctx context.Context, machine string) (string, error) {
	if !c.limit.TryAccept() {
		return "", errTooMany
	}
	// rand.Text returns 26 letters and digits, all of which a bootstrap token may contain. The 22 that are used are 110
	// random bits.
	text := strings.ToLower(rand.Text())
	id, secret := text[:6], text[6:22]
	err := c.Guest.Create(ctx, c.secret(id, secret, machine))
	if err != nil {
		return "", fmt.Errorf("make a bootstrap token in the guest: %w", err)
	}
	return id + "." + secret, nil
}

func (c *Credentials) secret(id, secret, machine string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"expiration":  c.Clock.Now().Add(Lifetime).UTC().Format(time.RFC3339),
			"description": "Made by the ignition-server for one machine that joins",
		},
	}
	if machine != "" {
		s.Annotations = map[string]string{hyperv1.BootstrapMachineAnnotation: machine}
	}
	return s
}

// withToken replaces the credentials in a kubeconfig; an empty token removes them.
func withToken(raw []byte, bootstrapToken string) ([]byte, error) {
	if _, err := kubeconfig.Parse(raw); err != nil {
		return nil, fmt.Errorf("read the bootstrap kubeconfig: %w", err)
	}
	config, err := clientcmd.Load(raw) //nolint:forbidigo // It was parsed before, and only the token changes.
	if err != nil {
		return nil, fmt.Errorf("read the bootstrap kubeconfig: %w", err)
	}
	if len(config.AuthInfos) == 0 {
		return nil, errors.New("the bootstrap kubeconfig has no user")
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: bootstrapToken}
	}
	return clientcmd.Write(*config)
}
