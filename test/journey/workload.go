// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/template"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/test/devcluster/env"
	"github.com/openshift/hypershift/test/devcluster/images"
)

//go:embed workload.yaml
var workload string

const (
	workloadName  = "web"
	workloadLimit = 5 * time.Minute
)

// RunWorkload runs two replicas of a web page in the hosted cluster, fetches the page, reads its log and runs a command
// in its container.
func (w *Walker) RunWorkload(ctx context.Context, cluster string) error {
	if err := w.applyWorkload(ctx, cluster); err != nil {
		return err
	}
	guest, err := w.GuestClient(cluster)
	if err != nil {
		return err
	}
	if err := w.Reach(ctx, "workload running", workloadLimit, DeploymentAvailable(guest, "default", workloadName, 2)); err != nil {
		return err
	}
	if err := w.Reach(ctx, StageWorkload, workloadLimit, w.pageServed(guest)); err != nil {
		return err
	}
	if err := w.Reach(ctx, "logs read", workloadLimit, w.answered(w.Guest(cluster, "logs", "deployment/"+workloadName, "--tail=3")...)); err != nil {
		return err
	}
	return w.Reach(ctx, "command run", workloadLimit, w.answered(w.Guest(cluster, "exec", "deployment/"+workloadName, "--", "/usr/bin/web", "hostname")...))
}

// answered runs a command that a kubelet answers, and shows the output. A kubelet gets its serving certificate some
// time after its node is Ready, and runs pods without it.
func (w *Walker) answered(argv ...string) Check {
	return func(ctx context.Context) (bool, string, error) {
		out, err := w.Read(ctx, argv...)
		if err != nil {
			return false, "", err
		}
		w.Say("$ %s\n%s", quote(argv), strings.TrimSpace(out))
		return true, "", nil
	}
}

func (w *Walker) applyWorkload(ctx context.Context, cluster string) error {
	specs, err := images.Pullspecs(w.environment().Images(), env.Registry)
	if err != nil {
		return err
	}
	var manifest bytes.Buffer
	parsed := template.Must(template.New("workload").Parse(workload))
	if err := parsed.Execute(&manifest, map[string]string{"Name": workloadName, "Image": specs["web"]}); err != nil {
		return err
	}
	file := w.Path(cluster + "-web.yaml")
	if err := os.WriteFile(file, manifest.Bytes(), 0o644); err != nil {
		return err
	}
	return w.Type(ctx, w.Guest(cluster, "apply", "-f", file)...)
}

// DeploymentAvailable checks that a Deployment has count available replicas.
func DeploymentAvailable(c client.Client, namespace, name string, count int32) Check {
	return func(ctx context.Context) (bool, string, error) {
		d := &appsv1.Deployment{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)
		return d.Status.AvailableReplicas == count, fmt.Sprintf("%d of %d replicas available", d.Status.AvailableReplicas, count), err
	}
}

// pageServed fetches the page through the Service's port on every node.
func (w *Walker) pageServed(guest client.Client) Check {
	return func(ctx context.Context) (bool, string, error) {
		urls, err := pageURLs(ctx, guest)
		if err != nil {
			return false, "", err
		}
		for _, url := range urls {
			page, err := fetch(ctx, url)
			if err != nil {
				return false, "", err
			}
			w.Say("$ curl %s", url)
			w.Say("%s", strings.TrimSpace(indent(page)))
		}
		return len(urls) > 0, "no node has an address", nil
	}
}

func pageURLs(ctx context.Context, guest client.Client) ([]string, error) {
	service := &corev1.Service{}
	if err := guest.Get(ctx, client.ObjectKey{Namespace: "default", Name: workloadName}, service); err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := guest.List(ctx, nodes); err != nil {
		return nil, err
	}
	var urls []string
	for _, node := range nodes.Items {
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				urls = append(urls, fmt.Sprintf("http://%s:%d/", address.Address, service.Spec.Ports[0].NodePort))
			}
		}
	}
	return urls, nil
}

func fetch(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("fetching %s: %s", url, response.Status)
	}
	return string(body), nil
}
