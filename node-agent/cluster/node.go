// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/hypershift/node-agent/host"
)

const (
	// requestTimeout limits a request other than a watch.
	requestTimeout = 20 * time.Second
	// watchTime is how long the API server keeps a watch open.
	watchTime = 10 * time.Minute
	maxAnswer = 8 << 20
	// metadataOnly requests no status of the Node, which is large and changes often.
	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	listMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// Node accesses the Node of this machine.
type Node struct {
	Host *host.Host
	// Name is the name of the Node.
	Name string
	// Server is the URL of the API server; empty means the one in the kubelet's kubeconfig.
	Server string
}

// Annotations holds the annotations of the Node.
type Annotations map[string]string

// object is the part of a Node's metadata that is read.
type object struct {
	Metadata struct {
		Annotations     Annotations `json:"annotations"`
		ResourceVersion string      `json:"resourceVersion"`
	} `json:"metadata"`
}

// Status is the health of the Node.
type Status struct {
	Ready bool
	// Reason is the message of the Ready condition.
	Reason string
	// Version is the version of the kubelet, such as v1.36.3.
	Version string
	// Renewed is when the kubelet last renewed its lease.
	Renewed time.Time
}

// Status reads the health of the Node.
func (n *Node) Status(ctx context.Context) (Status, error) {
	var node struct {
		Status struct {
			NodeInfo struct {
				KubeletVersion string `json:"kubeletVersion"`
			} `json:"nodeInfo"`
			Conditions []struct{ Type, Status, Message string } `json:"conditions"`
		} `json:"status"`
	}
	if err := n.do(ctx, http.MethodGet, "/api/v1/nodes/"+url.PathEscape(n.Name), "application/json", nil, &node); err != nil {
		return Status{}, err
	}
	var lease struct {
		Spec struct {
			RenewTime time.Time `json:"renewTime"`
		} `json:"spec"`
	}
	err := n.do(ctx, http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/"+url.PathEscape(n.Name), "application/json", nil, &lease)
	if err != nil {
		return Status{}, err
	}
	status := Status{Version: node.Status.NodeInfo.KubeletVersion, Renewed: lease.Spec.RenewTime, Reason: "the kubelet reports no Ready condition"}
	for _, c := range node.Status.Conditions {
		if c.Type == "Ready" {
			status.Ready, status.Reason = c.Status == "True", c.Message
		}
	}
	return status, nil
}

// Reach checks that the API server answers a request for the Node.
func (n *Node) Reach(ctx context.Context) error {
	return n.do(ctx, http.MethodGet, "/api/v1/nodes/"+url.PathEscape(n.Name), metadataOnly, nil, nil)
}

// Annotate changes annotations of the Node; an empty value removes an annotation.
func (n *Node) Annotate(ctx context.Context, changes Annotations) error {
	patch := map[string]any{}
	for key, value := range changes {
		patch[key] = nil
		if value != "" {
			patch[key] = value
		}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": patch}})
	if err != nil {
		return err
	}
	return n.do(ctx, http.MethodPatch, "/api/v1/nodes/"+url.PathEscape(n.Name), metadataOnly, body, nil)
}

// Watch calls see with the current annotations of the Node, and after each change, until the connection ends. The end
// of the connection is not an error.
func (n *Node) Watch(ctx context.Context, see func(Annotations)) error {
	ctx, cancel := context.WithTimeout(ctx, watchTime+requestTimeout)
	defer cancel()
	path := "/api/v1/nodes?fieldSelector=" + url.QueryEscape("metadata.name="+n.Name)
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []object `json:"items"`
	}
	if err := n.do(ctx, http.MethodGet, path, listMetadata, nil, &list); err != nil {
		return err
	}
	if len(list.Items) != 1 {
		return fmt.Errorf("there is no Node %s yet", n.Name)
	}
	see(list.Items[0].Metadata.Annotations)
	path += "&watch=true&resourceVersion=" + url.QueryEscape(list.Metadata.ResourceVersion) + "&timeoutSeconds=" + strconv.Itoa(int(watchTime.Seconds()))
	answer, done, err := n.request(ctx, http.MethodGet, path, metadataOnly, nil)
	if err != nil {
		return err
	}
	defer done()
	events := json.NewDecoder(answer)
	for {
		var event struct {
			Type   string `json:"type"`
			Object object `json:"object"`
		}
		if err := events.Decode(&event); err != nil {
			// The server ends each watch after a while, and connections break.
			return nil
		}
		if event.Type != "ADDED" && event.Type != "MODIFIED" {
			return nil
		}
		see(event.Object.Metadata.Annotations)
	}
}

// do sends a request and decodes the response into the given value.
func (n *Node) do(ctx context.Context, method, path, accept string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, done, err := n.request(ctx, method, path, accept, body)
	if err != nil {
		return err
	}
	defer done()
	raw, err := io.ReadAll(io.LimitReader(answer, maxAnswer))
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading the answer of the API server: %w", err)
	}
	return nil
}

// request returns the body of a successful response; the caller must call done.
func (n *Node) request(ctx context.Context, method, path, accept string, body []byte) (answer io.Reader, done func(), err error) {
	client, server, err := connect(n.Host)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(cmp.Or(n.Server, server), "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := client.Do(request)
	if err != nil {
		client.CloseIdleConnections()
		return nil, nil, err
	}
	done = func() { _ = response.Body.Close(); client.CloseIdleConnections() } // The response has been read.
	if response.StatusCode >= http.StatusMultipleChoices {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 300)) // The text is only a hint, so a read error does not matter.
		done()
		return nil, nil, fmt.Errorf("the API server answered %s: %s", response.Status, strings.TrimSpace(string(said)))
	}
	return response.Body, done, nil
}
