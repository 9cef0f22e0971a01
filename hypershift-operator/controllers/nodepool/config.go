// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/reference"
	"github.com/openshift/hypershift/support/releaseinfo"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	configKey           = "config"
	coreConfigLabel     = "hypershift.openshift.io/core-ignition-config"
	tunedGeneratedLabel = "hypershift.openshift.io/nto-generated-machine-config" //nolint:misspell // a name on the wire
	documentSeparator   = "\n---\n"
	baseCoreConfigs     = 2 // FIPS and SSH; the operator itself creates the one of the API proxy.
)

// reconcileConfig gathers and validates the configuration of the pool's nodes.
func (r *Reconciler) reconcileConfig(ctx context.Context, s *reconciliation) (ctrl.Result, error) {
	conditionType := hyperv1.NodePoolValidMachineConfigConditionType
	waiting, again, err := r.chooseFormat(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	var documents []string
	if waiting == "" {
		documents, waiting, err = r.documents(ctx, s)
	}
	if err == nil && waiting == "" {
		err = s.render(documents)
	}
	if err != nil {
		s.SetFalse(conditionType, hyperv1.NodePoolValidationFailedReason, err.Error())
		return ctrl.Result{RequeueAfter: releaseRetry}, r.stopHolding(ctx, s, hyperv1.NodePoolValidationFailedReason, err.Error())
	}
	if waiting != "" {
		s.SetFalse(conditionType, hyperv1.NodePoolValidationFailedReason, waiting)
		return ctrl.Result{RequeueAfter: waitPoll}, r.stopHolding(ctx, s, "WaitingForControlPlane", waiting)
	}
	if s.config.TrustBundle, err = r.trustBundle(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if err := s.hashConfig(); err != nil {
		return ctrl.Result{}, err
	}
	s.SetTrue(conditionType, hyperv1.AllIsWellMessage)
	if s.Stream != "" {
		if err := errors.Join(s.validatePlatform(), r.keepStream(ctx, s)); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: again}, r.tellUpdating(ctx, s)
}

// render sets the configuration. A pool that 0.1.0 configured keeps that version's path to the API server, because a
// different path would replace its machines.
func (s *reconciliation) render(documents []string) error {
	if s.formerAPIProxy != "" {
		former := append([]string{s.formerAPIProxy}, documents[1:]...)
		if err := s.join(former); err == nil {
			hash, _, err := s.hashes(s.Stream)
			if err != nil || s.hasConfig(hash) {
				return err
			}
		}
	}
	return s.join(documents)
}

// join sets the configuration and the operating system stream from the documents.
func (s *reconciliation) join(documents []string) (err error) {
	slices.Sort(documents)
	s.config.Raw = strings.Join(documents, documentSeparator)
	s.Stream, err = s.chooseStream(documents)
	return errors.Join(err, s.checkConfig())
}

// chooseFormat gets the format of the pool's first-boot configuration from the platform, and reports it in a condition.
func (r *Reconciler) chooseFormat(ctx context.Context, s *reconciliation) (waiting string, again time.Duration, err error) {
	chosen, err := s.Platform.UserDataFormat(ctx, r.Client, s.View(), len(s.Machines) > 0)
	if err != nil || chosen.Waiting != "" {
		return chosen.Waiting, chosen.Again, err
	}
	s.config.Format = chosen.Format
	if chosen.Why != "" {
		s.SetTrue(hyperv1.NodePoolValidPlatformConfigConditionType, fmt.Sprintf("Machines get user-data for %s, %s", readers[chosen.Format], chosen.Why))
	}
	if chosen.Keep == "" || s.Pool.Annotations[hyperv1.NodePoolUserDataFormatAnnotation] == chosen.Keep {
		return "", chosen.Again, nil
	}
	return "", 0, upsert.Patch(ctx, r.Client, s.Pool, func() { scope.Annotate(s.Pool, hyperv1.NodePoolUserDataFormatAnnotation, chosen.Keep) })
}

// readers names the program that reads user-data of each format.
var readers = map[hyperv1.UserDataFormat]string{hyperv1.UserDataIgnition: "Ignition", hyperv1.UserDataCloudConfig: "cloud-init"}

// documents returns all parts of the configuration; the API proxy of an OpenShift cluster is the first one. waiting says
// which part the control plane has not created yet.
func (r *Reconciler) documents(ctx context.Context, s *reconciliation) (documents []string, waiting string, err error) {
	var sources []corev1.ConfigMap
	if s.Distribution().OwnOperators {
		proxy, former, err := r.apiProxyConfig(ctx, s)
		if err != nil {
			return nil, "", err
		}
		s.formerAPIProxy = former
		documents = append(documents, proxy)
		core, err := r.listConfigs(ctx, s.Namespace(), client.MatchingLabels{coreConfigLabel: "true"})
		if err != nil {
			return nil, "", err
		}
		if want := coreConfigs(s.HC); len(core) != want {
			return nil, fmt.Sprintf("Waiting for the control plane: expected %d core ignition configs, found %d", want, len(core)), nil
		}
		tuned, err := r.listConfigs(ctx, s.Namespace(), client.MatchingLabels{tunedGeneratedLabel: "true", hyperv1.NodePoolAnnotation: s.Pool.Name})
		if err != nil {
			return nil, "", err
		}
		sources = append(core, tuned...)
	}
	user, err := r.userConfigs(ctx, s)
	if err != nil {
		return nil, "", err
	}
	for _, source := range append(sources, user...) {
		read, err := nodeinput.ReadFor(source.Data[configKey], s.Release.Distribution(), s.applier())
		if err != nil {
			return nil, "", fmt.Errorf("the ConfigMap %s/%s holds a configuration that cannot be used: %w", source.Namespace, source.Name, err)
		}
		documents = append(documents, read.Documents...)
	}
	return documents, "", nil
}

// coreConfigs returns the number of ConfigMaps with core configuration that a payload's control-plane-operator creates.
func coreConfigs(hc *hyperv1.HostedCluster) int {
	if len(hc.Spec.ImageContentSources) > 0 {
		return baseCoreConfigs + 1
	}
	return baseCoreConfigs
}

func (r *Reconciler) listConfigs(ctx context.Context, namespace string, labels client.MatchingLabels) ([]corev1.ConfigMap, error) {
	list := &corev1.ConfigMapList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), labels); err != nil {
		return nil, fmt.Errorf("listing ConfigMaps with node configuration in namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

func (r *Reconciler) userConfigs(ctx context.Context, s *reconciliation) ([]corev1.ConfigMap, error) {
	var configs []corev1.ConfigMap
	for _, ref := range s.Pool.Spec.Config {
		source, err := r.userConfig(ctx, s, "spec.config", ref.Name, configKey)
		if err != nil {
			return nil, err
		}
		configs = append(configs, *source)
	}
	return configs, nil
}

// userConfig reads a ConfigMap that a field of the pool names, and checks that it has the given key.
func (r *Reconciler) userConfig(ctx context.Context, s *reconciliation, field, name, dataKey string) (*corev1.ConfigMap, error) {
	source := &corev1.ConfigMap{}
	key := ctrlKey(s.Pool.Namespace, name)
	err := r.Client.Get(ctx, key, source)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: there is no ConfigMap %s: create it", field, key)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	if source.Data[dataKey] == "" {
		return nil, fmt.Errorf("%s: the ConfigMap %s has no key %q: add it", field, key, dataKey)
	}
	return source, nil
}

// checkConfig validates the complete configuration in the same way as the ignition-server reads it.
func (s *reconciliation) checkConfig() error {
	if s.Distribution().OwnOperators {
		return nil // The payload's own ignition-server reads it.
	}
	config, err := nodeinput.ReadFor(s.config.Raw, s.Release.Distribution(), s.applier())
	if err != nil {
		return fmt.Errorf("the ConfigMaps of spec.config together: %w", err)
	}
	mirrors := config.Mirrors
	for _, source := range s.HC.Spec.ImageContentSources {
		mirrors = append(mirrors, releaseinfo.Mirror{Source: source.Source, Mirrors: source.Mirrors})
	}
	configuration := ptr.Deref(s.HC.Spec.Configuration, hyperv1.ClusterConfiguration{})
	if err := nodeinput.ReadProxy(configuration.Proxy, s.HC.Spec.Networking).Check(); err != nil {
		return fmt.Errorf("HostedCluster %s: %w", s.HC.Name, err)
	}
	if _, err := nodeinput.ReadRegistries(configuration.Image, mirrors, s.nodeImages()...); err != nil {
		return fmt.Errorf("HostedCluster %s: %w", s.HC.Name, err)
	}
	return nil
}

// applier returns the program that applies the configuration to a machine.
func (s *reconciliation) applier() nodeinput.Applier {
	if s.config.Format == hyperv1.UserDataCloudConfig {
		return nodeinput.ByNodeAgent
	}
	return nodeinput.ByIgnition
}

// nodeImages returns the images of the payload that a machine needs before it becomes a node.
func (s *reconciliation) nodeImages() []string {
	var images []string
	for _, component := range []string{"node", "pod"} {
		if image, ok := s.Release.ComponentImage(component); ok {
			images = append(images, image)
		}
	}
	return images
}

// hashConfig computes the hash whose change replaces the pool's machines. It includes only the names of the pull
// secret and the trust bundle, because nodes apply changed content in place.
func (s *reconciliation) hashConfig() error {
	var err error
	s.config.Hash, s.config.HashWithoutVersion, err = s.hashes(s.Stream)
	return err
}

// hashes returns the hashes that the pool's configuration has with an operating system stream.
func (s *reconciliation) hashes(stream string) (hash, withoutVersion string, err error) {
	global, err := globalConfig(s.HC, s.Distribution(), s.Release.Version())
	if err != nil {
		return "", "", err
	}
	names := s.HC.Spec.PullSecret.Name + reference.Name(s.HC.Spec.AdditionalTrustBundle)
	if s.config.Format != hyperv1.UserDataIgnition {
		names += string(s.config.Format)
	}
	hash = naming.Hash(s.config.Raw + s.releaseIdentity() + names + global + stream)
	return hash, naming.Hash(s.config.Raw + names + stream), nil
}
