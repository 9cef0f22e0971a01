// SPDX-License-Identifier: Apache-2.0

// Package bootstrap makes what a machine asks for its node's first certificate with: a token of the guest that lives for an hour, is
// good for one Machine, and goes when that has joined.
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
	// Lifetime is how long a machine may take from getting its configuration until its kubelet asks for a certificate: firmware that
	// takes ten minutes for a reboot, and then pulling the kubelet's image.
	Lifetime = time.Hour
	// again is how long a machine that asks repeatedly gets the same token.
	again = time.Minute
	// perSecond and atOnce bound how many Secrets of the guest somebody who has the token of a pool can make.
	perSecond, atOnce = 1, 100
)

// ErrNoMachine tells that a token is of a Machine that there is not.
var ErrNoMachine = errors.New("the Machine that the token was made for does not exist")

// errTooMany tells that machines ask for tokens faster than machines boot.
var errTooMany = errors.New("too many machines ask for bootstrap tokens")

// Credentials makes what machines join with. It is safe for concurrent use.
type Credentials struct {
	// Guest makes bootstrap tokens.
	Guest client.Writer
	// Management reads the Machines of Namespace, as they are now.
	Management client.Reader
	Namespace  string
	Clock      clock.PassiveClock

	limit  flowcontrol.PassiveRateLimiter
	mu     sync.Mutex
	recent map[string]made
}

// made is a token that a machine got.
type made struct {
	token string
	at    time.Time
}

// New makes the credentials of one hosted cluster.
func New(guest client.Writer, management client.Reader, namespace string, clock clock.PassiveClock) *Credentials {
	return &Credentials{
		Guest: guest, Management: management, Namespace: namespace, Clock: clock,
		limit: flowcontrol.NewTokenBucketPassiveRateLimiter(perSecond, atOnce), recent: map[string]made{},
	}
}

// Payload is the configuration of an entry with credentials of the one machine that asks. A machine that is a node gets none. Machines
// that nobody made a Machine for join with what their cluster has in common.
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

// tokenOf is the bootstrap token of a Machine; empty for a node. Without a Machine's name it is one that the first Machine to use it keeps
// for itself.
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

// remembered is the token that a Machine just got, or else a new one.
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

// known is the token that a Machine just got; empty for none. What is too old for that is forgotten.
func (c *Credentials) known(machine string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	maps.DeleteFunc(c.recent, func(_ string, m made) bool { return now.Sub(m.at) >= again })
	return c.recent[machine].token
}

// mint makes a bootstrap token in the guest.
func (c *Credentials) mint(ctx context.Context, machine string) (string, error) {
	if !c.limit.TryAccept() {
		return "", errTooMany
	}
	// Its letters and digits are those that a bootstrap token is made of, and its 22 are 110 random bits.
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

// withToken replaces the credentials of a kubeconfig; an empty token leaves none.
func withToken(raw []byte, bootstrapToken string) ([]byte, error) {
	if _, err := kubeconfig.Parse(raw); err != nil {
		return nil, fmt.Errorf("read the bootstrap kubeconfig: %w", err)
	}
	config, err := clientcmd.Load(raw) //nolint:forbidigo // It was parsed, and all but the token stays as it is.
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
