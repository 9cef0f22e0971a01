# The product image: operators, provider, ignition-server and both CLIs. `make image` builds the same file system without
# a container engine; this is for those who have one.
#
#   docker build --build-arg VERSION=$(git describe --always) -t hypershift .

# By digest, so that nobody can change what it is; dependabot brings newer ones.
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26@sha256:3aff6657219a4d9c14e27fb1d8976c49c29fddb70ba835014f477e1c70636647 AS build
ARG TARGETARCH
ARG VERSION=unknown
WORKDIR /src
COPY go.mod go.sum ./
COPY api/go.mod api/go.sum api/
RUN go mod download
COPY . .
RUN GOARCH=${TARGETARCH} make BIN=/image/usr/bin VERSION=${VERSION} product \
 && mkdir -p /below/usr/bin /below/opt/cni && mv /image/usr/bin/node-network /image/usr/bin/tunnel /below/usr/bin/ && mv /image/usr/bin/cni /below/opt/cni/bin \
 && make BIN=/image/usr/share/hypershift VERSION=${VERSION} NODE_AGENT_ARCHS='amd64 arm64' node-agent
# What deploys the upstream provider starts /manager.
RUN ln -s /usr/bin/cluster-api-provider-maas /image/manager \
 && mkdir -p -m 1777 /below/tmp \
 && mkdir -p /below/etc/ssl/certs \
 && cp /etc/ssl/certs/ca-certificates.crt /below/etc/ssl/certs/ \
 && printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n' > /below/etc/passwd \
 && printf 'root:x:0:\nnonroot:x:65532:\n' > /below/etc/group \
 && printf 'hosts: files dns\n' > /below/etc/nsswitch.conf

FROM scratch
# What nodes run is a layer of its own, of which `release build` makes the image that they pull.
LABEL io.hypershift.node-network.layers=1
COPY --from=build /below /
COPY --from=build /image /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER 65532:65532
ENTRYPOINT ["/usr/bin/hypershift"]
