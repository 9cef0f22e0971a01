// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/kubeconfig"
	"github.com/openshift/hypershift/support/maas"
)

const (
	// infraTimeout limits all calls of one use, unless the options set a different limit.
	infraTimeout = 5 * time.Second
	// mostAnswer limits the size of a response in bytes, because the API server is a tenant's.
	mostAnswer = kubeconfig.MaxAnswer
	// mostWords limits the reported part of a message from a tenant's API server, in characters.
	mostWords = 300
)

// Reasons why an external cluster cannot be used.
const (
	reasonNoCredentials = "InfraClusterCredentialsMissing"
	reasonUnreachable   = "InfraClusterUnreachable"
	reasonUnauthorized  = "InfraClusterUnauthorized"
	reasonForbidden     = "InfraClusterForbidden"
	reasonRefused       = "InfraClusterAddressRefused"
	reasonFailed        = "InfraClusterRequestFailed"
	reasonBusy          = "WaitingForInfraCluster"
)

// infraError is why the operator cannot use an external cluster, with a message for users.
type infraError struct {
	reason, message string
	// connection reports that other calls to the cluster would fail too.
	connection bool
	// again is the time until another call is allowed; zero leaves it to the caller.
	again time.Duration
}

func (e *infraError) Error() string {
	return "the cluster for virtual machines cannot be used: " + e.message
}

// Kinds that the operator uses in a cluster for virtual machines. The types of KubeVirt and OpenShift are not imported,
// because only a few fields are read.
var (
	dataVolumes = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}
	networks    = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Network"}
	policies    = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}
)

// connect creates a client from a kubeconfig that was accepted. It makes no call, because the REST mapping of the kinds
// is known.
func connect(raw []byte, namespace string, guard *maas.Guard, timeout time.Duration) (place, error) {
	config, err := kubeconfig.Load(raw, kubeconfig.Options{
		Guard: cmp.Or(guard, &maas.Guard{}), Timeout: timeout, MaxAnswer: mostAnswer, UserAgent: "hypershift-operator",
	})
	if err != nil {
		return place{}, &infraError{reason: reasonNoCredentials, message: "its kubeconfig is not used: " + err.Error()}
	}
	config.QPS = -1
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(dataVolumes, meta.RESTScopeNamespace)
	mapper.Add(policies, meta.RESTScopeNamespace)
	mapper.Add(networks, meta.RESTScopeRoot)
	unusable := &infraError{reason: reasonNoCredentials, message: "its kubeconfig cannot be used"}
	caller, err := rest.HTTPClientFor(config)
	if err != nil {
		return place{}, unusable
	}
	c, err := client.New(config, client.Options{HTTPClient: caller, Scheme: clientgoscheme.Scheme, Mapper: mapper})
	if err != nil {
		return place{}, unusable
	}
	paths, err := discovery.NewDiscoveryClientForConfigAndClient(config, caller)
	if err != nil {
		return place{}, unusable
	}
	get := func(ctx context.Context, path string) ([]byte, error) {
		answer := paths.RESTClient().Get().AbsPath(path).Do(ctx)
		raw, _ := answer.Raw() // Its error does not contain the server's message.
		return raw, answer.Error()
	}
	return place{Client: c, namespace: namespace, get: get}, nil
}

// tell converts an error of an external cluster into a message that reveals nothing about the management cluster's
// network. Errors that callers check are returned unchanged.
func tell(err error) error {
	var told *infraError
	var status apierrors.APIStatus
	var refused *maas.RefusedAddressError
	var large *kubeconfig.TooLargeError
	switch {
	case err == nil, errors.As(err, &told), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		return err
	case apierrors.IsUnauthorized(err):
		return &infraError{reason: reasonUnauthorized, message: "it does not accept the kubeconfig; replace it with a valid one", connection: true}
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		return &infraError{reason: reasonForbidden, message: "its kubeconfig lacks a right: " + condition.Shorten(status.Status().Message, mostWords)}
	case errors.As(err, &refused):
		return &infraError{reason: reasonRefused, connection: true,
			message: "its address is blocked by the address policy; " +
				"an administrator can allow it with hypershift install --kubevirt-allow-cidrs"}
	case errors.As(err, &large):
		message := fmt.Sprintf("its answer is larger than %d bytes", large.Limit)
		return &infraError{reason: reasonFailed, connection: true, message: message}
	case errors.Is(err, kubeconfig.ErrRedirect):
		return &infraError{reason: reasonFailed, message: "it redirects to another URL; name that URL in the kubeconfig"}
	case apierrors.IsServiceUnavailable(err):
		return &infraError{reason: reasonUnreachable, connection: true, message: "it is not available; the request is retried"}
	case errors.As(err, &status):
		return &infraError{reason: reasonFailed, message: condition.Shorten(status.Status().Message, mostWords)}
	}
	return unreached(err)
}

// unreached converts an error of the connection; other errors are returned unchanged.
func unreached(err error) error {
	var untrusted x509.UnknownAuthorityError
	var misnamed x509.HostnameError
	if errors.As(err, &untrusted) || errors.As(err, &misnamed) {
		return &infraError{reason: reasonUnreachable, connection: true, message: "its certificate is not valid for the server and CA of the kubeconfig"}
	}
	var network net.Error
	if !errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &infraError{reason: reasonUnreachable, connection: true,
		message: "it does not answer: check the server in its kubeconfig, and that the management cluster reaches it"}
}
