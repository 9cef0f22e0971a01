// SPDX-License-Identifier: Apache-2.0

// Package guest writes the provider ID and the zone of a machine on the Node that runs on it, in the cluster that the machine is for.
package guest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/kubeconfig"
)

const (
	// callTimeout bounds a call, so that a guest whose API is away costs a worker seconds and not minutes.
	callTimeout = 5 * time.Second
	// listAge is how long one list of nodes serves all machines of a cluster, and how long a failure does.
	listAge = 10 * time.Second
	// ownKubeconfig and sharedKubeconfig end the names of the Secrets with the provider's and Cluster API's kubeconfig, which the
	// cluster's name begins; kubeconfigKey is where it is in there.
	ownKubeconfig    = "-provider-kubeconfig"
	sharedKubeconfig = "-kubeconfig"
	kubeconfigKey    = "value"
)

// ErrNoNode tells that the machine's Node has not registered yet.
var ErrNoNode = errors.New("the machine's Node has not registered yet")

// Nodes finds the Nodes of clusters. It is safe for concurrent use.
type Nodes struct {
	// Reader reads kubeconfig Secrets.
	Reader client.Reader
	Clock  clock.PassiveClock
	// Connect makes the client of a cluster; nil means a real one.
	Connect func(*rest.Config) (client.Client, error)

	mu       sync.Mutex
	clusters map[client.ObjectKey]*cluster
}

// cluster is what is known of one guest.
type cluster struct {
	mu     sync.Mutex
	digest string
	client client.Client
	listed time.Time
	nodes  map[string]*corev1.Node
	err    error
}

// SetProviderID finds the Node by any of the names and sets its provider ID, which nothing can change later, and its zone where the
// Node names none. ErrNoNode tells that there is none yet.
func (n *Nodes) SetProviderID(ctx context.Context, key client.ObjectKey, names []string, providerID, zone string) error {
	c := n.cluster(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := n.refresh(ctx, key, c); err != nil {
		return err
	}
	node := c.find(names)
	if node == nil {
		return ErrNoNode
	}
	if have := node.Spec.ProviderID; have != "" && have != providerID {
		return fmt.Errorf("node %s has provider ID %s already, which can't be changed to %s: delete the Node", node.Name, have, providerID)
	}
	return c.patch(ctx, node, providerID, labelValue(zone))
}

// notInLabels is what MAAS allows in names, and no API server in the value of a label.
var notInLabels = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// labelValue spells a zone as a label may have it: MAAS allows spaces and letters of all languages in names, and longer ones.
func labelValue(zone string) string {
	value := notInLabels.ReplaceAllLiteralString(zone, "-")
	value = value[:min(len(value), validation.LabelValueMaxLength)]
	return strings.Trim(value, "-_.")
}

func (n *Nodes) cluster(key client.ObjectKey) *cluster {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.clusters == nil {
		n.clusters = map[client.ObjectKey]*cluster{}
	}
	if n.clusters[key] == nil {
		n.clusters[key] = &cluster{}
	}
	return n.clusters[key]
}

// Forget drops what is known of a cluster that is gone.
func (n *Nodes) Forget(key client.ObjectKey) {
	n.mu.Lock()
	delete(n.clusters, key)
	n.mu.Unlock()
}

func (n *Nodes) refresh(ctx context.Context, key client.ObjectKey, c *cluster) error {
	if n.Clock.Since(c.listed) < listAge {
		return c.err
	}
	c.nodes, c.err = n.list(ctx, key, c)
	c.listed = n.Clock.Now()
	return c.err
}

func (n *Nodes) list(ctx context.Context, key client.ObjectKey, c *cluster) (map[string]*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := n.connect(ctx, key, c); err != nil {
		return nil, err
	}
	list := &corev1.NodeList{}
	if err := c.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the nodes of cluster %s: %w", key, err)
	}
	nodes := make(map[string]*corev1.Node, len(list.Items))
	for i := range list.Items {
		nodes[strings.ToLower(list.Items[i].Name)] = &list.Items[i]
	}
	return nodes, nil
}

// connect makes a client when there is none, or when the kubeconfig changed.
func (n *Nodes) connect(ctx context.Context, key client.ObjectKey, c *cluster) error {
	secret, err := n.kubeconfig(ctx, key)
	if err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(secret)
	if c.client != nil && c.digest == string(secret.UID)+secret.ResourceVersion {
		return nil
	}
	// A list has all nodes of the cluster.
	options := kubeconfig.Options{Timeout: callTimeout, MaxAnswer: kubeconfig.MaxList}
	cfg, err := kubeconfig.Load(secret.Data[kubeconfigKey], options)
	if err != nil {
		return fmt.Errorf("the kubeconfig in key %q of Secret %s is unusable: %w", kubeconfigKey, name, err)
	}
	made, err := n.make(cfg)
	if err != nil {
		return fmt.Errorf("connecting to cluster %s: %w", key, err)
	}
	c.client, c.digest = made, string(secret.UID)+secret.ResourceVersion
	return nil
}

// kubeconfig is the provider's own, which may do what the provider does and no more, or where nobody made one Cluster API's.
func (n *Nodes) kubeconfig(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	for _, suffix := range []string{ownKubeconfig, sharedKubeconfig} {
		secret := &corev1.Secret{}
		name := client.ObjectKey{Namespace: key.Namespace, Name: key.Name + suffix}
		err := n.Reader.Get(ctx, name, secret)
		if err == nil {
			return secret, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading Secret %s: %w", name, err)
		}
	}
	return nil, fmt.Errorf("waiting for the kubeconfig in Secret %s/%s: %w", key.Namespace, key.Name+sharedKubeconfig, ErrNoNode)
}

func (n *Nodes) make(cfg *rest.Config) (client.Client, error) {
	if n.Connect != nil {
		return n.Connect(cfg)
	}
	return client.New(cfg, client.Options{})
}

// find prefers an exact name; a short host name also stands for a Node that registered with its domain.
func (c *cluster) find(names []string) *corev1.Node {
	for _, name := range names {
		if node := c.nodes[strings.ToLower(name)]; node != nil {
			return node
		}
	}
	return nil
}

func (c *cluster) patch(ctx context.Context, node *corev1.Node, providerID, zone string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	changed := node.DeepCopy()
	changed.Spec.ProviderID = providerID
	if zone != "" && changed.Labels[corev1.LabelTopologyZone] == "" {
		metav1.SetMetaDataLabel(&changed.ObjectMeta, corev1.LabelTopologyZone, zone)
	}
	if equality.Semantic.DeepEqual(node, changed) {
		return nil
	}
	if err := c.client.Patch(ctx, changed, client.MergeFrom(node)); err != nil {
		return fmt.Errorf("setting the provider ID and the zone of node %s: %w", node.Name, err)
	}
	changed.DeepCopyInto(node)
	return nil
}
