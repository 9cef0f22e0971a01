// SPDX-License-Identifier: Apache-2.0

// Package guest sets the provider ID and the zone of a machine on its Node in the guest cluster.
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
	// callTimeout limits a call. An unreachable API of a guest cluster thus blocks a worker for seconds and not minutes.
	callTimeout = 5 * time.Second
	// listAge is how long a list of nodes, or the error of a failed list, is used for all machines of a cluster.
	listAge = 10 * time.Second
	// ownKubeconfig and sharedKubeconfig are suffixes of Secret names, after the name of the cluster. The Secrets hold the
	// kubeconfigs of the provider and of Cluster API, under kubeconfigKey.
	ownKubeconfig    = "-provider-kubeconfig"
	sharedKubeconfig = "-kubeconfig"
	kubeconfigKey    = "value"
)

// ErrNoNode means that the Node of the machine has not registered yet.
var ErrNoNode = errors.New("the machine's Node has not registered yet")

// Nodes finds and updates the Nodes of clusters. It is safe for concurrent use.
type Nodes struct {
	// Reader reads kubeconfig Secrets.
	Reader client.Reader
	Clock  clock.PassiveClock
	// Connect creates the client of a cluster; nil means a real one.
	Connect func(*rest.Config) (client.Client, error)

	mu       sync.Mutex
	clusters map[client.ObjectKey]*cluster
}

// cluster is the cache for one guest cluster.
type cluster struct {
	mu     sync.Mutex
	digest string
	client client.Client
	listed time.Time
	nodes  map[string]*corev1.Node
	err    error
}

// SetProviderID finds the Node by any of the names. It sets the provider ID, which is immutable afterwards, and the
// zone if the Node has none. It returns ErrNoNode if there is no Node yet.
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

// notInLabels matches characters that MAAS permits in names, but the API server does not permit in label values.
var notInLabels = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// labelValue converts a zone name to a label value. MAAS permits spaces, letters of all languages and longer names.
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

// Forget drops the cache for a deleted cluster.
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

// connect creates a client if there is none, or if the kubeconfig changed.
func (n *Nodes) connect(ctx context.Context, key client.ObjectKey, c *cluster) error {
	secret, err := n.kubeconfig(ctx, key)
	if err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(secret)
	if c.client != nil && c.digest == string(secret.UID)+secret.ResourceVersion {
		return nil
	}
	// The limit allows for a list of all nodes of the cluster.
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

// kubeconfig returns the Secret with the kubeconfig of the provider, which has minimal permissions. If that Secret
// does not exist, it returns the Secret with the kubeconfig of Cluster API.
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

// find returns the Node with the first of the names that exists, without regard to case; nil if there is none.
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
