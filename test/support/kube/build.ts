// `node test/support/kube/build.ts`: compiles kube-apiserver and etcd for the tests, before they are needed.
import { buildKube } from './find-kube.ts';

const { apiserver } = await buildKube((text) => console.error(text));
console.log(apiserver);
