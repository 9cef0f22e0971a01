// SPDX-License-Identifier: Apache-2.0

// Package payload gathers the inputs of a node's configuration from the hosted namespace, and renders it.
package payload

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/ignition-server/nodeconfig"
	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/distributions"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/releaseinfo"
)

// Objects of the hosted namespace with inputs of the payload, and their keys.
const (
	sshKeyKey   = "id_rsa.pub"
	clientCAKey = "ca.crt"
)

// Reasons of a Problem, in addition to those of the release image.
const (
	ReasonInvalidConfig           = "InvalidConfig"
	ReasonWaiting                 = "WaitingForControlPlane"
	ReasonUnsupportedDistribution = "UnsupportedDistribution"
	// ReasonOutdated means that the control plane does not have the configuration of the token yet.
	ReasonOutdated = "WaitingForConfiguration"
)

const (
	waitRetry    = 30 * time.Second
	releaseRetry = time.Minute
)

// Request holds what one token Secret requests.
type Request struct {
	// NodePool is <namespace>/<name>.
	NodePool string
	// ConfigHash identifies the configuration within the pool.
	ConfigHash string
	// Release is the pull spec of the pool's release payload.
	Release string
	// Config holds the packed YAML documents of the pool.
	Config []byte
	// Format is the format of the user-data that contains the token; empty for Ignition.
	Format hyperv1.UserDataFormat
	// Hashes identify the inputs for which the token was written.
	Hashes Hashes
}

// Problem explains to the user why there is no payload.
type Problem struct {
	Reason  string
	Message string
	// RetryAfter is the delay before a retry. Zero means that only a change of an object causes one.
	RetryAfter time.Duration
}

func (p *Problem) Error() string { return p.Reason + ": " + p.Message }

// Generator renders payloads of the Kubernetes distribution.
type Generator struct {
	// Client reads the hosted namespace.
	Client client.Reader
	// Namespace is the hosted namespace.
	Namespace string
	// Mirrors are the mirrors from which this process reads release images. Nodes get the original image names, and their
	// own mirrors.
	Mirrors []releaseinfo.Mirror
	// Guard restricts the addresses of registries; nil allows all.
	Guard *addressguard.Guard

	mu       sync.Mutex
	options  releaseinfo.Options
	provider releaseinfo.Provider
}

// IsInputConfigMap reports whether payloads always depend on the ConfigMap, regardless of the cluster's configuration.
func IsInputConfigMap(name string) bool {
	return name == hosted.KubeletClientCA || name == hosted.UserCABundle
}

// Names reports whether a control plane's configuration names the ConfigMap as an input of nodes.
func Names(hcp *hyperv1.HostedControlPlane, configMap string) bool {
	proxyCA, registryCAs := namedCAs(hcp.Spec.Configuration)
	return configMap == proxyCA || configMap == registryCAs
}

func namedCAs(configuration *hyperv1.ClusterConfiguration) (proxy, registries string) {
	if configuration == nil {
		return "", ""
	}
	if configuration.Proxy != nil {
		proxy = configuration.Proxy.TrustedCA.Name
	}
	if configuration.Image != nil {
		registries = configuration.Image.AdditionalTrustedCA.Name
	}
	return proxy, registries
}

// Generate returns the configuration of a node: an Ignition config, or a node plan for a machine with cloud-init.
func (g *Generator) Generate(ctx context.Context, request Request) ([]byte, error) {
	hcp, err := g.hostedControlPlane(ctx)
	if err != nil {
		return nil, err
	}
	in, err := g.gather(ctx, hcp)
	if err != nil {
		return nil, err
	}
	if err := request.Hashes.check(hcp, in); err != nil {
		return nil, err
	}
	if err := g.addImages(ctx, &in, request.Release); err != nil {
		return nil, err
	}
	config, err := Unpack(request.Config)
	if err != nil {
		return nil, &Problem{Reason: ReasonInvalidConfig, Message: fmt.Sprintf("the token Secret's config cannot be read: %v", err)}
	}
	in.Config = string(config)
	in.ConfigHash = request.ConfigHash
	_, in.NodePool, _ = strings.Cut(request.NodePool, "/")
	render := nodeconfig.Render
	if request.Format == hyperv1.UserDataCloudConfig {
		render = nodeconfig.RenderPlan
	}
	rendered, err := render(in)
	if err != nil {
		return nil, &Problem{Reason: ReasonInvalidConfig, Message: err.Error()}
	}
	return rendered, nil
}

func (g *Generator) hostedControlPlane(ctx context.Context) (*hyperv1.HostedControlPlane, error) {
	var list hyperv1.HostedControlPlaneList
	if err := g.Client.List(ctx, &list, client.InNamespace(g.Namespace)); err != nil {
		return nil, fmt.Errorf("list the HostedControlPlanes of namespace %s: %w", g.Namespace, err)
	}
	if len(list.Items) != 1 {
		return nil, waiting(fmt.Sprintf("one HostedControlPlane in namespace %s (there are %d)", g.Namespace, len(list.Items)))
	}
	return &list.Items[0], nil
}

// gather reads all inputs except the release image.
func (g *Generator) gather(ctx context.Context, hcp *hyperv1.HostedControlPlane) (nodeconfig.Input, error) {
	in := nodeconfig.Input{}
	for _, network := range hcp.Spec.Networking.ServiceNetwork {
		in.ServiceCIDRs = append(in.ServiceCIDRs, network.CIDR.String())
	}
	for _, source := range hcp.Spec.ImageContentSources {
		in.Mirrors = append(in.Mirrors, releaseinfo.Mirror{Source: source.Source, Mirrors: source.Mirrors})
	}
	var err error
	if in.PullSecret, err = g.secret(ctx, hosted.PullSecret, corev1.DockerConfigJsonKey); err != nil {
		return in, err
	}
	if in.BootstrapKubeconfig, err = g.secret(ctx, hosted.BootstrapKubeconfig, hosted.KubeconfigKey); err != nil {
		return in, err
	}
	if in.ClientCA, err = g.configMap(ctx, hosted.KubeletClientCA, clientCAKey); err != nil {
		return in, err
	}
	if reference.Name(hcp.Spec.AdditionalTrustBundle) != "" {
		if in.TrustBundle, err = g.configMap(ctx, hosted.UserCABundle, hosted.UserCABundleKey); err != nil {
			return in, err
		}
	}
	if hcp.Spec.SSHKey.Name != "" {
		key, err := g.secret(ctx, hcp.Spec.SSHKey.Name, sshKeyKey)
		if err != nil {
			return in, err
		}
		in.SSHKeys = strings.Split(strings.TrimSpace(string(key)), "\n")
	}
	return in, g.gatherConfiguration(ctx, hcp, &in)
}

func (g *Generator) secret(ctx context.Context, name, key string) ([]byte, error) {
	secret := &corev1.Secret{}
	err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) || (err == nil && len(secret.Data[key]) == 0) {
		return nil, waiting(fmt.Sprintf("key %q of Secret %s/%s", key, g.Namespace, name))
	}
	if err == nil && name == hosted.BootstrapKubeconfig {
		err = hosted.Trusted(secret)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", g.Namespace, name, err)
	}
	return secret.Data[key], nil
}

func waiting(what string) *Problem {
	return &Problem{Reason: ReasonWaiting, Message: "Waiting for " + what, RetryAfter: waitRetry}
}

func (g *Generator) addImages(ctx context.Context, in *nodeconfig.Input, release string) error {
	provider, err := g.releases(in.TrustBundle, in.Mirrors)
	if err != nil {
		return &Problem{Reason: ReasonInvalidConfig, Message: fmt.Sprintf("ConfigMap %s: %v", hosted.UserCABundle, err)}
	}
	image, err := provider.Lookup(ctx, release, in.PullSecret)
	if problem, ok := errors.AsType[*releaseinfo.Error](err); ok {
		return &Problem{Reason: "ReleaseImage" + string(problem.Reason), Message: problem.Error(), RetryAfter: releaseRetry}
	}
	if err != nil {
		return fmt.Errorf("look up release image %s: %w", release, err)
	}
	if distributions.Of(image.Distribution()).OwnOperators {
		return &Problem{Reason: ReasonUnsupportedDistribution, Message: fmt.Sprintf("%s is an %s release; this ignition-server "+
			"serves nodes of the Kubernetes distribution only. OpenShift releases bring their own ignition-server: let the HostedCluster "+
			"use the control-plane-operator of its release (no control-plane-operator-image annotation)", release, image.Distribution())}
	}
	var ok bool
	if in.NodeImage, ok = image.ComponentImage("node"); !ok {
		return missingComponent(release, "node")
	}
	if in.PodImage, ok = image.ComponentImage("pod"); !ok {
		return missingComponent(release, "pod")
	}
	return nil
}

func missingComponent(release, tag string) *Problem {
	return &Problem{Reason: ReasonInvalidConfig, Message: fmt.Sprintf(
		"release image %s has no component %q; build it with `hypershift release build --component %s=...`", release, tag, tag)}
}

// releases returns a provider. It reuses the provider, and its cache, while its options do not change.
func (g *Generator) releases(trustBundle []byte, mirrors []releaseinfo.Mirror) (releaseinfo.Provider, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	options := releaseinfo.Options{CABundle: trustBundle, Mirrors: slices.Concat(g.Mirrors, mirrors), Guard: g.Guard}
	if g.provider != nil && reflect.DeepEqual(options, g.options) {
		return g.provider, nil
	}
	provider, err := releaseinfo.NewRegistry(options)
	if err != nil {
		return nil, err
	}
	g.options, g.provider = options, provider
	return provider, nil
}
