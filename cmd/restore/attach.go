// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attach returns a feeder that sends input through the API server, as `kubectl attach -i` does.
func attach(config *rest.Config) (feeder, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the management cluster: %w", err)
	}
	return func(ctx context.Context, key client.ObjectKey, container string, input io.Reader) error {
		request := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(key.Namespace).Name(key.Name).SubResource("attach").
			VersionedParams(&corev1.PodAttachOptions{Container: container, Stdin: true, Stderr: true}, scheme.ParameterCodec)
		executor, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
		if err != nil {
			return fmt.Errorf("attach to Pod %s: %w", key, err)
		}
		var said bytes.Buffer
		if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stderr: &said}); err != nil {
			return fmt.Errorf("send the snapshot to Pod %s: %w %s", key, err, strings.TrimSpace(said.String()))
		}
		return nil
	}, nil
}
