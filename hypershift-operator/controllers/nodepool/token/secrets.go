// SPDX-License-Identifier: Apache-2.0

// Package token maintains the Secrets by which a NodePool's machines get their configuration: the token, which
// identifies a configuration for the ignition-server, and the user-data, with which machines are installed.
package token

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/config"
	"github.com/openshift/hypershift/hypershift-operator/controllers/nodepool/scope"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// userDataKey is Cluster API's key for bootstrap data.
	userDataKey = "value"
	// poll is the interval after which the controller checks objects that it does not watch.
	poll = 5 * time.Second
)

// Secrets writes and retires the token and user-data Secrets of one pool.
type Secrets struct {
	*scope.Scope
	Client client.Client
	// Config is the current configuration of the pool's nodes.
	Config config.Config
	// HCP is nil while there is no control plane.
	HCP *hyperv1.HostedControlPlane
	// PullSecret is the content of the cluster's pull secret. IgnitionCA is PEM.
	PullSecret, IgnitionCA []byte
}

// Reconcile writes the two Secrets by which a machine gets its configuration. The ignition-server identifies the
// configuration by the token. Machines are installed with the user-data. Reconcile returns the name of its Secret.
func (s Secrets) Reconcile(ctx context.Context) (userData string, result ctrl.Result, err error) {
	token := s.Secret(scope.TokenPrefix, s.Config.Hash)
	data, err := s.Data()
	if err != nil {
		return "", ctrl.Result{}, err
	}
	if _, err := upsert.Object(ctx, s.Client, token, func() error { s.shapeToken(token, data); return nil }); err != nil {
		return "", ctrl.Result{}, err
	}
	if err := s.grantToken(ctx, token); err != nil {
		return "", ctrl.Result{}, err
	}
	s.reportPayload(token)
	s.reportReached(token)
	userData, err = s.writeUserData(ctx, s.Config.Hash, token)
	if err != nil {
		return "", ctrl.Result{}, err
	}
	if s.namesOfUsers() {
		result.RequeueAfter = poll // No watch reports that the HostedControlPlane refers to the copies.
	}
	return userData, result, nil
}

// configuration returns the cluster's configuration as the HostedControlPlane has it, since the ignition-server
// compares the two.
func (s Secrets) configuration() *hyperv1.ClusterConfiguration {
	if s.namesOfUsers() {
		return s.HC.Spec.Configuration
	}
	return hosted.Configuration(s.HC.Spec.Configuration)
}

// namesOfUsers reports whether the HostedControlPlane has references as an operator of version 0.1.0 wrote them.
func (s Secrets) namesOfUsers() bool {
	copies := hosted.Configuration(s.HC.Spec.Configuration)
	return s.HCP != nil && equality.Semantic.DeepEqual(s.HCP.Spec.Configuration, s.HC.Spec.Configuration) &&
		!equality.Semantic.DeepEqual(s.HCP.Spec.Configuration, copies)
}

// Data returns the data that the ignition-server needs to render the configuration, except for the token.
func (s Secrets) Data() (map[string][]byte, error) {
	compressed, err := compress(s.Config.Raw)
	if err != nil {
		return nil, fmt.Errorf("compressing the configuration of NodePool %s: %w", s.Key(), err)
	}
	configuration, err := nodeinput.ConfigurationHash(s.configuration())
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{
		hyperv1.TokenSecretReleaseKey:                   []byte(s.Release.Pinned()),
		hyperv1.TokenSecretReleaseVersionKey:            []byte(s.Release.Version()),
		hyperv1.TokenSecretConfigKey:                    compressed,
		hyperv1.TokenSecretPullSecretHashKey:            []byte(naming.HashValue(s.PullSecret)),
		hyperv1.TokenSecretAdditionalTrustBundleHashKey: []byte(naming.HashValue(s.Config.TrustBundle)),
		hyperv1.TokenSecretHCConfigurationHashKey:       []byte(configuration),
	}
	if s.Stream != "" {
		data[hyperv1.TokenSecretOSStreamKey] = []byte(s.Stream)
	}
	return data, nil
}

// following are the keys of a token Secret that may change without replacing the pool's machines.
var following = []string{
	hyperv1.TokenSecretPullSecretHashKey, hyperv1.TokenSecretAdditionalTrustBundleHashKey,
	hyperv1.TokenSecretHCConfigurationHashKey,
}

// shapeToken fills a new token Secret, and restores missing keys of an existing one. The ignition-server also writes to
// an existing Secret. It rotates the token, and stores the rendered configuration and the result of rendering.
// shapeToken therefore updates only the hashes of inputs that may change without replacing machines.
func (s Secrets) shapeToken(token *corev1.Secret, data map[string][]byte) {
	scope.Annotate(token, hyperv1.NodePoolAnnotation, s.Key())
	scope.Annotate(token, hyperv1.IgnitionConfigAnnotation, "true")
	scope.Annotate(token, hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation, string(s.Pool.Spec.Management.UpgradeType))
	if s.Config.Format != hyperv1.UserDataIgnition {
		scope.Annotate(token, hyperv1.TokenSecretUserDataFormatAnnotation, string(s.Config.Format))
	}
	if arch := s.Pool.Spec.Arch; arch != "" && arch != hyperv1.ArchitectureAMD64 {
		scope.Annotate(token, hyperv1.TokenSecretArchitectureAnnotation, arch)
	}
	// A configuration to which the pool was reverted must not expire.
	delete(token.Annotations, hyperv1.IgnitionServerTokenExpirationTimestampAnnotation)
	if token.Data == nil {
		token.Data = map[string][]byte{}
	}
	for key, value := range data {
		if len(token.Data[key]) == 0 || slices.Contains(following, key) {
			token.Data[key] = value
		}
	}
	if len(token.Data[hyperv1.TokenSecretTokenKey]) > 0 {
		return
	}
	scope.Annotate(token, hyperv1.TokenSecretLastGenerationTimeAnnotation, s.Now.UTC().Format(time.RFC3339Nano))
	if _, restored := s.HC.Annotations[hyperv1.HostedClusterRestoredFromBackupAnnotation]; restored {
		scope.Annotate(token, hyperv1.TokenSecretIgnitionReachedAnnotation, "True")
	}
	if token.Type == "" {
		token.Type = corev1.SecretTypeOpaque
	}
	token.Data[hyperv1.TokenSecretTokenKey] = []byte(uuid.NewString())
}

// reportReached reports whether a machine has fetched the configuration.
func (s Secrets) reportReached(token *corev1.Secret) {
	reached := hyperv1.NodePoolReachedIgnitionEndpoint
	switch {
	case token.Annotations[hyperv1.TokenSecretIgnitionReachedAnnotation] == "True", s.InPlace() && s.IsTrue(reached):
		s.SetTrue(reached, "A machine has fetched its configuration")
	default:
		s.SetFalse(reached, hyperv1.NodePoolIgnitionNotReachedReason, "No machine has fetched this configuration yet")
	}
}

// writeUserData writes the user-data of a configuration with its current token, and returns the name of the Secret. If
// the ignition-server accepts tokens of single machines, the Secret also contains the token that the provider replaces.
func (s Secrets) writeUserData(ctx context.Context, hash string, token *corev1.Secret) (string, error) {
	firstBoot, err := s.firstBoot(hash, token)
	if err != nil {
		return "", err
	}
	secret := s.Secret(scope.UserDataPrefix, hash)
	_, err = upsert.Object(ctx, s.Client, secret, func() error {
		scope.Annotate(secret, hyperv1.NodePoolAnnotation, s.Key())
		if secret.Type == "" {
			secret.Type = corev1.SecretTypeOpaque
		}
		secret.Data = map[string][]byte{
			userDataKey:         firstBoot,
			"disableTemplating": []byte(base64.StdEncoding.EncodeToString([]byte("true"))),
		}
		if token.Annotations[hyperv1.MachineTokensAnnotation] == "true" {
			secret.Data[hyperv1.UserDataTokenKey] = token.Data[hyperv1.TokenSecretTokenKey]
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return secret.Name, s.grant(ctx, secret, platform.ProviderName, "get")
}

// compress encodes text by gzip, then base64. The gzip header contains no time, so the same text always produces the
// same bytes.
func compress(text string) ([]byte, error) {
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write([]byte(text)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(zipped.Bytes())), nil
}
