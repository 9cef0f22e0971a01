// SPDX-License-Identifier: Apache-2.0

package namespaceproxy

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// KubeconfigFile is the name of the kubeconfig in Options.Folder.
	KubeconfigFile = "kubeconfig"
	// TokenFile is where the program finds the token of its service account.
	TokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	// serverName is the name in the certificate of the proxy.
	serverName = "namespace-proxy"

	certificateFile, keyFile = "tls.crt", "tls.key"
)

// Options configure Run.
type Options struct {
	// Namespace is the namespace to which the program is limited.
	Namespace string
	// Address is the loopback address and port to listen on.
	Address string
	// Folder holds the certificate of the proxy, and the kubeconfig for the program.
	Folder string
}

// Run serves the proxy until ctx ends. It writes the kubeconfig after it listens. A restarted proxy uses the stored
// certificate again, because the program reads the kubeconfig only once.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	address, err := netip.ParseAddrPort(o.Address)
	if err != nil || !address.Addr().IsLoopback() {
		return fmt.Errorf("listening on %q: it is not a loopback address with a port; use one such as 127.0.0.1:6444",
			o.Address)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		return fmt.Errorf("discovering the resources of the API server: %w", err)
	}
	handler, err := New(config, mapper, o.Namespace)
	if err != nil {
		return err
	}
	pair, ca, err := certificate(o.Folder)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return fmt.Errorf("listening on %s: %w; set another port with --listen", address, err)
	}
	defer listener.Close()
	if err := writeKubeconfig(o.Folder, listener.Addr().String(), ca); err != nil {
		return err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the namespace proxy on %s: %w", address, err)
	}
	return nil
}

// Ready returns an error until the kubeconfig exists.
func Ready(folder string) error {
	if _, err := os.Stat(filepath.Join(folder, KubeconfigFile)); err != nil {
		return fmt.Errorf("the namespace proxy is not ready: %w", err)
	}
	return nil
}

// certificate returns the certificate of the proxy, which is its own CA. It creates one if the folder has none.
func certificate(folder string) (tls.Certificate, []byte, error) {
	certificatePath, keyPath := filepath.Join(folder, certificateFile), filepath.Join(folder, keyFile)
	ca, err := os.ReadFile(certificatePath)
	if err == nil {
		pair, err := tls.LoadX509KeyPair(certificatePath, keyPath)
		if err != nil {
			return tls.Certificate{}, nil, fmt.Errorf("reading the certificate in %s: %w", folder, err)
		}
		return pair, ca, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return tls.Certificate{}, nil, fmt.Errorf("reading the certificate in %s: %w", folder, err)
	}
	keyPEM, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("making the key of the namespace proxy: %w", err)
	}
	pair, ca, err := selfSigned(keyPEM)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("making the certificate of the namespace proxy: %w", err)
	}
	// The certificate is written last: without it, both are made again.
	if err := errors.Join(os.WriteFile(keyPath, keyPEM, 0o600), replace(certificatePath, ca)); err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("writing the certificate in %s: %w", folder, err)
	}
	return pair, ca, nil
}

func selfSigned(keyPEM []byte) (tls.Certificate, []byte, error) {
	key, err := keyutil.ParsePrivateKeyPEM(keyPEM)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return tls.Certificate{}, nil, fmt.Errorf("the key is a %T, which cannot sign", key)
	}
	made, err := cert.NewSelfSignedCACert(cert.Config{CommonName: serverName}, signer)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	ca, err := cert.EncodeCertificates(made)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pair, err := tls.X509KeyPair(ca, keyPEM)
	return pair, ca, err
}

func writeKubeconfig(folder, address string, ca []byte) error {
	const name = "management"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: "https://" + address, TLSServerName: serverName, CertificateAuthorityData: ca,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: TokenFile}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	if err := replace(filepath.Join(folder, KubeconfigFile), data); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// replace writes a file at once. Its content is not secret, and the program may run as another user.
func replace(path string, data []byte) error {
	//nolint:gosec // G306: the file holds a CA and the path of a token.
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
