// SPDX-License-Identifier: Apache-2.0

package nodepool

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/hypershift-operator/naming"
	"github.com/openshift/hypershift/hypershift-operator/platform"
	"github.com/openshift/hypershift/support/hosted"
	"github.com/openshift/hypershift/support/nodeinput"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	tokenPrefix    = "token"
	userDataPrefix = "user-data"

	// userDataKey is Cluster API's key for bootstrap data.
	userDataKey = "value"
)

// reconcileToken writes the two Secrets by which a machine gets its configuration. The ignition-server identifies the
// configuration by the token. Machines are installed with the user-data.
func (r *Reconciler) reconcileToken(ctx context.Context, s *scope) (ctrl.Result, error) {
	token := s.secret(tokenPrefix, s.config.hash)
	data, err := s.tokenData()
	if err != nil {
		return ctrl.Result{}, err
	}
	if _, err := upsert.Object(ctx, r.Client, token, func() error { s.shapeToken(token, data); return nil }); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.grantToken(ctx, s, token); err != nil {
		return ctrl.Result{}, err
	}
	s.token = token
	s.reportPayload()
	s.reportReached()
	userData, err := r.writeUserData(ctx, s, s.config.hash, token)
	if err != nil {
		return ctrl.Result{}, err
	}
	s.userData = userData
	if s.namesOfUsers() {
		return ctrl.Result{RequeueAfter: waitPoll}, nil // No watch reports that the HostedControlPlane refers to the copies.
	}
	return ctrl.Result{}, nil
}

// configuration returns the cluster's configuration as the HostedControlPlane has it, since the ignition-server
// compares the token's hash with the HostedControlPlane.
func (s *scope) configuration() *hyperv1.ClusterConfiguration {
	if s.namesOfUsers() {
		return s.hc.Spec.Configuration
	}
	return hosted.Configuration(s.hc.Spec.Configuration)
}

// namesOfUsers reports whether the HostedControlPlane has references as an operator of version 0.1.0 wrote them.
func (s *scope) namesOfUsers() bool {
	copies := hosted.Configuration(s.hc.Spec.Configuration)
	return s.hcp != nil && equality.Semantic.DeepEqual(s.hcp.Spec.Configuration, s.hc.Spec.Configuration) &&
		!equality.Semantic.DeepEqual(s.hcp.Spec.Configuration, copies)
}

func (s *scope) secret(prefix, hash string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace(), Name: fmt.Sprintf("%s-%s-%s", prefix, s.pool.Name, hash),
	}}
}

// tokenData returns the data that the ignition-server needs to render the configuration, except for the token.
func (s *scope) tokenData() (map[string][]byte, error) {
	compressed, err := compress(s.config.raw)
	if err != nil {
		return nil, fmt.Errorf("compressing the configuration of NodePool %s: %w", s.key(), err)
	}
	configuration, err := nodeinput.ConfigurationHash(s.configuration())
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{
		hyperv1.TokenSecretReleaseKey:                   []byte(s.release.Pinned()),
		hyperv1.TokenSecretReleaseVersionKey:            []byte(s.release.Version()),
		hyperv1.TokenSecretConfigKey:                    compressed,
		hyperv1.TokenSecretPullSecretHashKey:            []byte(naming.HashValue(s.pullSecret)),
		hyperv1.TokenSecretAdditionalTrustBundleHashKey: []byte(naming.HashValue(s.config.trustBundle)),
		hyperv1.TokenSecretHCConfigurationHashKey:       []byte(configuration),
	}
	if s.config.stream != "" {
		data[hyperv1.TokenSecretOSStreamKey] = []byte(s.config.stream)
	}
	return data, nil
}

// following are the keys of a token Secret that may change without replacing the pool's machines.
var following = []string{hyperv1.TokenSecretPullSecretHashKey, hyperv1.TokenSecretAdditionalTrustBundleHashKey, hyperv1.TokenSecretHCConfigurationHashKey}

// shapeToken fills a new token Secret, and restores missing keys of an existing one. The ignition-server also writes to
// an existing Secret. It rotates the token, and stores the rendered configuration and the result of rendering.
// shapeToken therefore updates only the hashes of inputs that may change without replacing machines.
func (s *scope) shapeToken(token *corev1.Secret, data map[string][]byte) {
	annotate(token, hyperv1.NodePoolAnnotation, s.key())
	annotate(token, hyperv1.IgnitionConfigAnnotation, "true")
	annotate(token, hyperv1.TokenSecretNodePoolUpgradeTypeAnnotation, string(s.pool.Spec.Management.UpgradeType))
	if s.config.format != hyperv1.UserDataIgnition {
		annotate(token, hyperv1.TokenSecretUserDataFormatAnnotation, string(s.config.format))
	}
	if arch := s.pool.Spec.Arch; arch != "" && arch != hyperv1.ArchitectureAMD64 {
		annotate(token, hyperv1.TokenSecretArchitectureAnnotation, arch)
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
	annotate(token, hyperv1.TokenSecretLastGenerationTimeAnnotation, s.now.UTC().Format(time.RFC3339Nano))
	if _, restored := s.hc.Annotations[hyperv1.HostedClusterRestoredFromBackupAnnotation]; restored {
		annotate(token, hyperv1.TokenSecretIgnitionReachedAnnotation, "True")
	}
	if token.Type == "" {
		token.Type = corev1.SecretTypeOpaque
	}
	token.Data[hyperv1.TokenSecretTokenKey] = []byte(uuid.NewString())
}

// reportReached reports whether a machine has fetched the configuration.
func (s *scope) reportReached() {
	reached := hyperv1.NodePoolReachedIgnitionEndpoint
	switch {
	case s.token.Annotations[hyperv1.TokenSecretIgnitionReachedAnnotation] == "True", s.inPlace() && s.isTrue(reached):
		s.accept(reached, "A machine has fetched its configuration")
	default:
		s.reject(reached, hyperv1.NodePoolIgnitionNotReachedReason, "No machine has fetched this configuration yet")
	}
}

func (s *scope) isTrue(conditionType string) bool {
	for _, c := range s.pool.Status.Conditions {
		if c.Type == conditionType {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// writeUserData writes the user-data of a configuration with its current token, and returns the name of the Secret. If
// the ignition-server accepts tokens of single machines, the Secret also contains the token that the provider replaces.
func (r *Reconciler) writeUserData(ctx context.Context, s *scope, hash string, token *corev1.Secret) (string, error) {
	firstBoot, err := s.firstBoot(hash, token)
	if err != nil {
		return "", err
	}
	secret := s.secret(userDataPrefix, hash)
	_, err = upsert.Object(ctx, r.Client, secret, func() error {
		annotate(secret, hyperv1.NodePoolAnnotation, s.key())
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
	return secret.Name, r.grant(ctx, s, secret, platform.ProviderName, "get")
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
