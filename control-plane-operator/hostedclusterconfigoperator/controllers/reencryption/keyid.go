// SPDX-License-Identifier: Apache-2.0

package reencryption

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/control-plane-operator/controllers/hostedcontrolplane/v2/kubeapiserver"
	"github.com/openshift/hypershift/support/upsert"
)

const (
	// keyPoll is the interval at which a plugin's key is checked.
	keyPoll = 5 * time.Minute
	// keySettles is the time from the first API server that uses a new key until all use it. Each API server asks its
	// plugin once a minute.
	keySettles = 3 * time.Minute
	// keyMetric has a label with the hash of a key's ID. Its value is the time at which the plugin last reported that key
	// as the one to encrypt with.
	keyMetric = "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds"
)

// keySeen is a key of a plugin that an API server uses.
type keySeen struct {
	id    string
	since time.Time
}

// followsPlugin reports whether a plugin encrypts, whose key may change at any time.
func followsPlugin(config *corev1.Secret) bool {
	return config.Annotations[kubeapiserver.EncryptionStage] == string(hyperv1.EncryptionMigrationCompleted) && kubeapiserver.WritingPlugin(config) != ""
}

// follow rewrites all stored data when the plugin has a new key and all API servers use it. Until then an API server
// could still write with the previous key, and the plugin's owner would remove that key too early.
func (r *Reconciler) follow(ctx context.Context, config *corev1.Secret) (ctrl.Result, error) {
	again := ctrl.Result{RequeueAfter: keyPoll}
	metrics, err := r.Metrics(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("asking the API server for the key of its plugin: %w", err)
	}
	id := currentKey(metrics, kubeapiserver.WritingPlugin(config))
	if id == "" || id == config.Annotations[kubeapiserver.EncryptionKeyID] {
		return again, nil
	}
	now := r.Clock.Now()
	if r.taken.id != id {
		r.taken = keySeen{id: id, since: now}
	}
	if left := keySettles - now.Sub(r.taken.since); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if err := r.rewrite(ctx); err != nil {
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).Info("Rewrote all Secrets of the guest for another key of the plugin", "keyIDHash", id)
	return again, upsert.Patch(ctx, r.Management, config, func() { config.Annotations[kubeapiserver.EncryptionKeyID] = id })
}

var label = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// currentKey returns the hash of the ID of the plugin's latest key; empty if there is none.
func currentKey(metrics []byte, plugin string) string {
	var id string
	var latest float64
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, len(metrics)+1)
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), keyMetric+"{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(labels, "} ")
		at, err := strconv.ParseFloat(value, 64)
		of := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(labels, -1) {
			of[pair[1]] = pair[2]
		}
		if err == nil && at > latest && of["provider_name"] == plugin {
			id, latest = of["key_id_hash"], at
		}
	}
	return id
}
